"""Asking a server for its health in gRPC's own way: one call of HTTP/2, and no more of it.

Answers are read from their data alone. The headers around it are compressed against a table that
both sides keep; what they could add is why a server that tells no health tells none.
"""

from __future__ import annotations

import asyncio
import enum
import struct
from dataclasses import dataclass, field

METHOD = "/grpc.health.v1.Health/Check"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_LONGEST_FRAME = 16 * 1024
_END_STREAM, _END_HEADERS, _ACK = 0x1, 0x4, 0x1
_STREAM = 1


class _Kind(enum.IntEnum):
    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7


class Serving(enum.Enum):
    UNKNOWN = 0
    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


class NoHealth(Exception):
    """A server that does not tell; the message says what it did instead."""


@dataclass(slots=True)
class _Answer:
    data: bytearray = field(default_factory=bytearray)
    over: bool = False


async def check(host: str, port: int, service: str) -> Serving:
    """What a server says of `service`, or of itself for an empty name. OSError, `NoHealth`."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(request(f"{host}:{port}", service))
        answer = _Answer()
        while not answer.over:
            await _read_frame(reader, writer, answer)
        return _health(bytes(answer.data))
    except asyncio.IncompleteReadError:
        raise NoHealth("the server closed the connection") from None
    finally:
        writer.close()


def request(authority: str, service: str) -> bytes:
    """All that is sent of our own accord."""
    # The numbers are places in the table of headers that everybody knows.
    headers = (
        b"\x83\x86"  # POST, http
        + b"\x04" + _text(METHOD)
        + b"\x01" + _text(authority)
        + b"\x0f\x10" + _text("application/grpc")
        + b"\x0f\x2b" + _text("kube-probe/1.36")
        + b"\x00" + _text("te") + _text("trailers")
    )  # fmt: skip
    name = service.encode()
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    return (
        _PREFACE
        + frame(_Kind.SETTINGS)
        + frame(_Kind.HEADERS, headers, _END_HEADERS, _STREAM)
        + frame(_Kind.DATA, struct.pack(">BI", 0, len(message)) + message, _END_STREAM, _STREAM)
    )


def frame(kind: int, content: bytes = b"", flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


async def _read_frame(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: _Answer
) -> None:
    head = await reader.readexactly(9)
    length = int.from_bytes(head[:3], "big")
    kind, flags, stream = struct.unpack(">BBI", head[3:])
    if length > _LONGEST_FRAME:
        raise NoHealth("the server does not speak HTTP/2")
    content = await reader.readexactly(length)
    if kind in (_Kind.SETTINGS, _Kind.PING):
        if not flags & _ACK:
            echo = content if kind == _Kind.PING else b""
            writer.write(frame(kind, echo, _ACK))
    elif kind == _Kind.GOAWAY or (kind == _Kind.RST_STREAM and stream == _STREAM):
        raise NoHealth("the server refused the call")
    elif kind in (_Kind.DATA, _Kind.HEADERS) and stream == _STREAM:
        if kind == _Kind.DATA:
            answer.data += content
        answer.over = bool(flags & _END_STREAM)


def _health(data: bytes) -> Serving:
    """One message: whether it is compressed, its length, and a field or nothing."""
    if not data:
        raise NoHealth(
            "the server knows no health of it, or does not implement the health protocol"
        )
    try:
        packed, length = struct.unpack_from(">BI", data)
        message = data[5 : 5 + length]
        if packed or (message and (len(message) != 2 or message[0] != 0x08)):
            raise ValueError
        return Serving(message[1] if message else 0)
    except (ValueError, struct.error):
        raise NoHealth("the server's answer is no health") from None


def _text(value: str) -> bytes:
    content = value.encode()
    return _integer(len(content), 7) + content


def _integer(value: int, bits: int) -> bytes:
    """As headers hold numbers: in the low bits of a byte, and what does not fit after it."""
    most = (1 << bits) - 1
    return bytes((value,)) if value < most else bytes((most,)) + _varint(value - most)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
