"""Asking a server for its health in gRPC's own way: one unary call over HTTP/2 (h2)."""

from __future__ import annotations

import asyncio
import enum
import struct

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

METHOD = "/grpc.health.v1.Health/Check"
_PIECE = 16 * 1024
_LONGEST_FRAME = 9 + _PIECE
_NOT_FOUND, _UNIMPLEMENTED = "5", "12"
"""Values of the trailer `grpc-status`."""


class Serving(enum.Enum):
    UNKNOWN = 0
    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


class NoHealth(Exception):
    """The server did not answer the health check; the message says what it did instead."""


async def check(host: str, port: int, service: str) -> Serving:
    """What a server says of `service`, or of itself for an empty name. OSError, `NoHealth`."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        return await _call(reader, writer, f"{host}:{port}", service)
    except ProtocolError:
        raise NoHealth("the server does not speak HTTP/2") from None
    finally:
        writer.close()


async def _call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, authority: str, service: str
) -> Serving:
    # The window is never widened, so a server can send at most 64 KiB of data.
    connection = H2Connection(H2Configuration(client_side=True))
    _send_request(connection, authority, service)
    writer.write(connection.data_to_send())
    data = status = b""
    unread = 0
    while unread <= _LONGEST_FRAME and (received := await reader.read(_PIECE)):
        events = connection.receive_data(received)
        unread = 0 if events else unread + len(received)
        for event in events:
            match event:
                case ResponseReceived() | TrailersReceived():
                    status = dict(event.headers).get(b"grpc-status", status)
                case DataReceived():
                    data += event.data
                case StreamEnded():
                    return _health(data, status.decode("latin-1"))
                case StreamReset() | ConnectionTerminated():
                    raise NoHealth("the server refused the call")
        writer.write(connection.data_to_send())
    if unread:
        raise NoHealth("the server does not speak HTTP/2")
    raise NoHealth("the server closed the connection")


def _send_request(connection: H2Connection, authority: str, service: str) -> None:
    connection.initiate_connection()
    stream = connection.get_next_available_stream_id()
    headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", METHOD),
        (":authority", authority),
        ("content-type", "application/grpc"),
        ("user-agent", "kube-probe/1.36"),
        ("te", "trailers"),
    ]
    connection.send_headers(stream, headers)
    name = service.encode()
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    connection.send_data(stream, struct.pack(">BI", 0, len(message)) + message, end_stream=True)


def _health(data: bytes, status: str) -> Serving:
    """One message: whether it is compressed, its length, and a field or nothing."""
    if status == _NOT_FOUND:
        raise NoHealth("the server does not know this service")
    if status == _UNIMPLEMENTED:
        raise NoHealth("the server does not implement the grpc health protocol")
    if not data:
        raise NoHealth(f"the server sent no HealthCheckResponse, grpc-status {status or 'missing'}")
    try:
        compressed, length = struct.unpack_from(">BI", data)
        message = data[5 : 5 + length]
        if compressed or (message and (len(message) != 2 or message[0] != 0x08)):
            raise ValueError
        return Serving(message[1] if message else 0)
    except (ValueError, struct.error):
        raise NoHealth("the server's answer is not a HealthCheckResponse") from None


def _varint(value: int) -> bytes:
    """A length as protocol buffers write it."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
