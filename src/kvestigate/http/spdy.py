"""SPDY/3.1 frames: bytes in, frames out, and back. No I/O.

Nobody serves SPDY to browsers any more, but Kubernetes still multiplexes port-forwarding with
it, raw or inside WebSocket messages. This is the part of draft 3.1 that its programs use:
streams with headers, data, resets, pings and go-away. They do no flow control, so settings
and window updates are read over.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kvestigate import errors

VERSION = 3
MAX_CONTROL = 64 * 1024
"""Bytes of a control frame, and of its headers once decompressed."""

_CONTROL = 0x8000
_FIN = 0x01
_STREAM_ID = 0x7FFFFFFF
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY, _HEADERS = 1, 2, 3, 6, 7, 8

CANCEL = 5

# The dictionary that SPDY/3 primes its header compression with (draft 3, section 2.6.10.1).
# Each word stands behind its length, like a header in a block.
_HEADER_NAMES = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base "
    "content-encoding content-language content-length content-location content-md5 "
    "content-range content-type date etag expect expires from host if-match if-modified-since "
    "if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer "
    "transfer-encoding upgrade user-agent vary via warning www-authenticate method get status"
)
_HEADER_WORDS = (
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
)

_UNCOUNTED = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, "
    "Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)

DICTIONARY = (
    b"".join(
        struct.pack("!I", len(word)) + word.encode()
        for word in (*_HEADER_NAMES.split(), *_HEADER_WORDS)
    )
    + _UNCOUNTED.encode()
)


class SpdyError(errors.ConnectionFailed):
    """The peer broke the protocol; the connection cannot go on."""


@dataclass(frozen=True, slots=True)
class SynStream:
    """A new stream."""

    stream: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case; several values of one name are joined by NUL."""
    fin: bool = False
    """The sender will send no data on it."""


@dataclass(frozen=True, slots=True)
class SynReply:
    """The stream is accepted."""

    stream: int
    headers: Mapping[str, str] = field(default_factory=dict)
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Data:
    stream: int
    data: bytes
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    """The stream ends at once, in both directions."""

    stream: int
    status: int = CANCEL


@dataclass(frozen=True, slots=True)
class Ping:
    """To be sent back by whoever did not begin it: clients begin odd ids, servers even ones."""

    id: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """No new streams will be taken."""

    last_stream: int = 0
    status: int = 0


Frame: TypeAlias = SynStream | SynReply | Data | Reset | Ping | GoAway


class Framer:
    """One connection's framing; headers are compressed with the memory of those before."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def receive(self, data: bytes) -> Iterator[Frame]:
        """The frames that `data` completes. Read them all before the next call."""
        self._buffer += data
        while len(self._buffer) >= 8:
            first, second = struct.unpack_from("!II", self._buffer)
            length = second & 0xFFFFFF
            control = bool(first >> 31)
            if control and length > MAX_CONTROL:
                raise SpdyError(f"a SPDY control frame of {length} bytes")
            if len(self._buffer) < 8 + length:
                return
            payload = bytes(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            fin = bool(second >> 24 & _FIN)
            if not control:
                yield Data(first & _STREAM_ID, payload, fin)
            elif (frame := self._control(first, payload, fin)) is not None:
                yield frame

    def encode(self, frame: Frame) -> bytes:
        if isinstance(frame, Data):
            flags = _FIN if frame.fin else 0
            return struct.pack("!II", frame.stream, flags << 24 | len(frame.data)) + frame.data
        if isinstance(frame, SynStream):
            block = struct.pack("!IIH", frame.stream, 0, 0) + self._compressed(frame.headers)
            return _control(_SYN_STREAM, block, frame.fin)
        if isinstance(frame, SynReply):
            block = struct.pack("!I", frame.stream) + self._compressed(frame.headers)
            return _control(_SYN_REPLY, block, frame.fin)
        if isinstance(frame, Reset):
            return _control(_RST_STREAM, struct.pack("!II", frame.stream, frame.status))
        if isinstance(frame, Ping):
            return _control(_PING, struct.pack("!I", frame.id))
        return _control(_GOAWAY, struct.pack("!II", frame.last_stream, frame.status))

    def _control(self, first: int, payload: bytes, fin: bool) -> Frame | None:
        if (first >> 16) != _CONTROL | VERSION:
            raise SpdyError(f"a SPDY frame of version {(first >> 16) & 0x7FFF}, not {VERSION}")
        kind = first & 0xFFFF
        try:
            if kind == _SYN_STREAM:
                (stream,) = struct.unpack_from("!I", payload)
                return SynStream(stream & _STREAM_ID, self._headers(payload[10:]), fin)
            if kind in (_SYN_REPLY, _HEADERS):
                (stream,) = struct.unpack_from("!I", payload)
                # Read even if unused: the compression remembers.
                headers = self._headers(payload[4:])
                return SynReply(stream & _STREAM_ID, headers, fin) if kind == _SYN_REPLY else None
            if kind == _RST_STREAM:
                stream, status = struct.unpack_from("!II", payload)
                return Reset(stream & _STREAM_ID, status)
            if kind == _PING:
                return Ping(*struct.unpack_from("!I", payload))
            if kind == _GOAWAY:
                stream, status = struct.unpack_from("!II", payload)
                return GoAway(stream & _STREAM_ID, status)
        except struct.error:
            raise SpdyError(f"a SPDY frame of type {kind} that is too short") from None
        return None

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, MAX_CONTROL)
        except zlib.error as failure:
            raise SpdyError(f"SPDY headers that cannot be decompressed: {failure}") from None
        if self._inflate.unconsumed_tail:
            raise SpdyError(f"SPDY headers of more than {MAX_CONTROL} bytes")
        (count,) = struct.unpack_from("!I", plain)
        offset = 4
        headers: dict[str, str] = {}
        for _ in range(min(count, len(plain))):
            name, offset = _text(plain, offset)
            value, offset = _text(plain, offset)
            headers[name.lower()] = value
        return headers

    def _compressed(self, headers: Mapping[str, str]) -> bytes:
        plain = [struct.pack("!I", len(headers))]
        for name, value in headers.items():
            for text in (name.lower(), value):
                data = text.encode()
                plain += (struct.pack("!I", len(data)), data)
        return self._deflate.compress(b"".join(plain)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def _control(kind: int, payload: bytes, fin: bool = False) -> bytes:
    head = (_CONTROL | VERSION) << 16 | kind
    return struct.pack("!II", head, (_FIN if fin else 0) << 24 | len(payload)) + payload


def _text(block: bytes, offset: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("!I", block, offset)
    end = offset + 4 + length
    if end > len(block):
        raise SpdyError("SPDY headers that end too early")
    return block[offset + 4 : end].decode(errors="replace"), end
