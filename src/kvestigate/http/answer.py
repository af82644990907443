"""The bytes of a response's header, and whether its body is compressed."""

from __future__ import annotations

import http
import time
import zlib
from collections.abc import Iterator, Sequence
from email.utils import formatdate
from functools import lru_cache

from kvestigate.http.message import Request

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in http.HTTPStatus
}
# The server decides these from the body and the connection.
_FRAMING = frozenset(("content-length", "transfer-encoding", "connection", "date"))

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"connection: close\r\n"
KEEP_ALIVE = b"connection: keep-alive\r\n"
UPGRADE = b"connection: Upgrade\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class BadField(ValueError):
    """A handler's header field that would break the framing."""


class Dates:
    """The `date` field, formatted once a second."""

    def __init__(self) -> None:
        self._second = 0
        self._field = b""

    def field(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._field = f"date: {formatdate(second, usegmt=True)}\r\n".encode()
        return self._field


class Chunks:
    """Pieces of streams, framed; who watch the same are sent the same one after the other."""

    def __init__(self) -> None:
        self._piece = self._chunk = b""

    def of(self, piece: bytes) -> bytes:
        if piece is self._piece:
            return self._chunk
        chunk = b"".join((b"%x\r\n" % len(piece), piece, b"\r\n"))
        if len(piece) <= _CHUNK_KEPT:
            self._piece, self._chunk = piece, chunk
        return chunk


_CHUNK_KEPT = 1024 * 1024


def has_body(status: int) -> bool:
    return status >= 200 and status not in (204, 304)


def head(
    status: int,
    fields: Sequence[tuple[str, str]],
    *,
    framing: bytes,
    connection: bytes = b"",
    date: bytes = b"",
) -> bytes:
    """The header; `framing`, which says how long the body is, and the others are whole fields."""
    return b"%b%b%b%b\r\n" % (_start(status, tuple(fields)), framing, connection, date)


# Answers differ in their lengths and bodies far more than in these.
@lru_cache(maxsize=256)
def _start(status: int, fields: tuple[tuple[str, str], ...]) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in fields if name.lower() not in _FRAMING]
    own = "".join(lines)
    if own.count("\n") != len(lines) or own.count("\r") != len(lines):
        raise BadField("a response's header field has a line break")
    line = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} Unknown\r\n"
    try:
        return f"{line}{own}".encode("latin-1")
    except UnicodeEncodeError as failure:
        raise BadField("a response's header field is not Latin-1") from failure


def accepts_gzip(request: Request) -> bool:
    for field in request.headers.get_all("accept-encoding"):
        for offer in field.lower().split(","):
            coding, _, parameter = offer.partition(";")
            if coding.strip() in ("gzip", "*"):
                return parameter.replace(" ", "").rstrip("0") not in ("q=", "q=0.")
    return False


def gzipped(pieces: Sequence[bytes]) -> bytes:
    """Compressed as fast as zlib can: bandwidth is cheaper than latency here."""
    deflater = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    parts = [deflater.compress(piece) for piece in pieces]
    parts.append(deflater.flush())
    return b"".join(parts)


def slices(pieces: Sequence[bytes], size: int) -> Iterator[memoryview]:
    """The pieces in parts of at most `size` bytes, give or take a short piece.

    Long pieces are split, not copied; short ones are copied together.
    """
    short: list[bytes] = []
    held = 0
    for piece in pieces:
        if len(piece) < _LONG:
            short.append(piece)
            held += len(piece)
            if held < size:
                continue
        if short:
            yield memoryview(b"".join(short))
            short.clear()
            held = 0
        if len(piece) >= _LONG:
            whole = memoryview(piece)
            for start in range(0, len(piece), size):
                yield whole[start : start + size]
    if short:
        yield memoryview(b"".join(short))


_LONG = 32 * 1024
"""Bytes of a piece that is worth a write of its own."""
