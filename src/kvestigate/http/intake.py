"""Bytes from a client in, requests and refusals out. No I/O: segmentation cannot matter.

llhttp is strict about what smuggling needs (two lengths, bare line feeds, folded fields, bad
chunks); what it lets through, HTTP/0.9 and stacked transfer codings among it, is refused here.
"""

from __future__ import annotations

import enum
import re
from collections import deque
from dataclasses import dataclass
from functools import lru_cache

import httptools
from msgspec import Struct

from kvestigate.http.limits import Limits
from kvestigate.http.message import Headers, Peer, Request, Sink

_FRAMING = frozenset(("host", "content-length", "transfer-encoding", "expect"))


# Clients send the same few names over and over.
@lru_cache(maxsize=256)
def _field_name(raw: bytes) -> str:
    return raw.decode("latin-1").lower()


class Phase(enum.Enum):
    """What of a request has come."""

    NOTHING = "nothing"
    HEAD = "head"
    BODY = "body"


class Refusal(Exception):
    """Why a request is answered without asking the handler; the connection ends with it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Unserved(Struct, frozen=True):
    """A request that is refused before it is complete, as far as it has come."""

    status: int
    reason: str
    path: str
    """As sent, without the query; empty if none has come."""
    headers: Headers
    """Those that have come."""
    peer: Peer


class Arrival(Struct, frozen=True):
    """A complete request."""

    request: Request
    keep_alive: bool
    http_1_0: bool
    upgrade: bool


class Intake:
    """Parses what one connection receives."""

    def __init__(self, limits: Limits, peer: Peer) -> None:
        self._limits = limits
        self._peer = peer
        self._parser = httptools.HttpRequestParser(self)
        self.phase = Phase.NOTHING
        self.ready: deque[Arrival] = deque()
        self.refusal: Refusal | None = None
        self.ended = False
        """Whether the last request said that no other follows it."""
        self.upgrading = False
        self.wants_continue = False
        """Whether the client holds its body back until it is told to go on."""
        self.tail = b""
        """What came behind a request to upgrade."""
        self._read: Fields | None = None
        self._write: Fields | None = None
        """The fields of the last requests without and with a body."""
        self.sink: Sink | None = None
        """What takes the body that is coming."""
        self.on_message_begin()
        self.phase = Phase.NOTHING

    def feed(self, data: bytes) -> None:
        if self.upgrading:
            self.tail += data
        if self.ended or self.refusal is not None:
            return
        fresh = self.phase is Phase.NOTHING
        if fresh and self._repeats(data):
            return
        before = len(self.ready)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.tail = bytes(data[upgrade.args[0] :])
        except httptools.HttpParserError as failure:
            if not self.ended:
                self._refuse(failure)
        else:
            if self.phase is Phase.HEAD and len(self.ready) == before:
                # A field that never ends is seen by no callback. All of this data is of one
                # header unless a request ended in it; then counting starts with the next.
                self._waiting += len(data)
                if self._waiting > self._limits.header_bytes:
                    self.refusal = Refusal(431, "the header is too large")
            elif fresh and len(self.ready) == before + 1:
                self._remember(data, self.ready[-1])

    def unserved(self, refusal: Refusal) -> Unserved:
        """What has come of the request that is refused, and nothing of the one before it."""
        begun = self.phase is not Phase.NOTHING
        path = self._target.decode("latin-1").partition("?")[0] if begun else ""
        headers = Headers.parsed(self._fields) if begun else Headers()
        return Unserved(refusal.status, refusal.reason, path, headers, self._peer)

    def abandon(self) -> None:
        """Nothing more will come, and what has come will not be answered."""
        for sink in (self.sink, *(arrival.request.sink for arrival in self.ready)):
            if sink is not None:
                sink.close()
        self.sink = None
        self.ready.clear()

    def _repeats(self, data: bytes) -> bool:
        known = self._read if data.startswith(b"GET ") else self._write
        if known is None or len(data) > self._limits.header_bytes:
            return False
        request = known.repeated_by(data, self._peer)
        if request is None or len(request.body) > self._limits.body_bytes:
            return False
        self.ready.append(Arrival(request, True, False, False))
        return True

    def _remember(self, data: bytes, arrival: Arrival) -> None:
        """The fields of a request that came whole and asks for nothing of the connection."""
        if self.phase is not Phase.NOTHING or self.ended or self._coding or self._expect:
            return
        fields = Fields.of(data, arrival.request.headers)
        if arrival.request.method == "GET":
            self._read = fields
        else:
            self._write = fields

    def _refuse(self, failure: httptools.HttpParserError) -> None:
        cause = failure.__context__
        if isinstance(cause, Refusal):
            self.refusal = cause
        else:
            self.refusal = Refusal(400, f"malformed request: {failure}")

    # The parser's callbacks.

    def on_message_begin(self) -> None:
        self.phase = Phase.HEAD
        self.wants_continue = False
        self._target = b""
        self._method = ""
        self._fields: list[tuple[str, str]] = []
        self._size = 0
        self._waiting = 0
        self._hosts = 0
        self._coding = ""
        self._length = 0
        self._expect = ""
        self._pieces: list[bytes] = []
        self._received = 0
        self._most = self._limits.body_bytes

    def on_url(self, piece: bytes) -> None:
        self._target += piece
        if len(self._target) > self._limits.header_bytes:
            raise Refusal(431, "the request target is too long")

    def on_header(self, raw_name: bytes, raw_value: bytes) -> None:
        self._size += len(raw_name) + len(raw_value)
        if self._size + len(self._target) > self._limits.header_bytes:
            raise Refusal(431, "the header is too large")
        if self.phase is Phase.BODY:
            return  # a trailer: nobody asked for it
        name = _field_name(raw_name)
        value = raw_value.decode("latin-1")
        self._fields.append((name, value))
        if len(self._fields) > self._limits.header_count:
            raise Refusal(431, "too many header fields")
        if name in _FRAMING:
            self._note_framing(name, value)

    def _note_framing(self, name: str, value: str) -> None:
        if name == "host":
            self._hosts += 1
        elif name == "content-length":
            self._length = int(value)
        elif name == "transfer-encoding":
            before = f"{self._coding}, " if self._coding else ""
            self._coding = before + value.lower()
        else:
            self._expect = value.lower()

    def on_headers_complete(self) -> None:
        if self._limits.body_of is not None:
            self._most = min(self._most, self._limits.body_of(Headers.parsed(self._fields)))
        self._check_framing()
        if self._limits.sink_of is not None and (self._length or self._coding):
            self.sink = self._limits.sink_of(Headers.parsed(self._fields))
        self._method = self._parser.get_method().decode("ascii")
        self._path, self._query = _split_target(self._target, self._method)
        self.phase = Phase.BODY
        if self._expect:
            if self._expect != "100-continue":
                raise Refusal(417, f"expectation {self._expect!r} is unknown")
            self.wants_continue = not self._http_1_0 and bool(self._length or self._coding)

    def on_body(self, piece: bytes) -> None:
        self._received += len(piece)
        if self._received > self._most:
            raise Refusal(413, f"the body is longer than {self._most} bytes")
        if self.sink is None:
            self._pieces.append(piece)
            return
        try:
            self.sink.write(piece)
        except OSError as error:
            raise Refusal(507, f"the body cannot be kept: {error.strerror}") from error

    def on_message_complete(self) -> None:
        pieces = self._pieces
        request = Request(
            self._method,
            self._path,
            self._query,
            Headers.parsed(self._fields),
            pieces[0] if len(pieces) == 1 else b"".join(pieces),
            self._peer,
            self.sink,
        )
        self.sink = None
        keep_alive = self._parser.should_keep_alive()
        upgrade = self._parser.should_upgrade()
        self.ready.append(Arrival(request, keep_alive, self._http_1_0, upgrade))
        self.upgrading = upgrade
        self.ended = upgrade or not keep_alive
        self.phase = Phase.NOTHING

    # Rules.

    def _check_framing(self) -> None:
        version = self._parser.get_http_version()
        self._http_1_0 = version == "1.0"
        if version != "1.1" and not self._http_1_0:
            raise Refusal(505, f"HTTP/{version} is not spoken here")
        if self._hosts > 1 or (self._hosts == 0 and not self._http_1_0):
            raise Refusal(400, "a request names exactly one host")
        if self._coding:
            if self._http_1_0:
                raise Refusal(400, "HTTP/1.0 has no transfer-encoding")
            if self._coding != "chunked":
                raise Refusal(501, f"transfer-encoding {self._coding!r} is not supported")
        if self._length > self._most:
            raise Refusal(413, f"the body is longer than {self._most} bytes")
        if (self._length or self._coding) and self._parser.should_upgrade():
            # The parser takes such a body for the new protocol's bytes.
            raise Refusal(400, "a request to upgrade has no body")


def _split_target(target: bytes, method: str) -> tuple[str, str]:
    text = target.decode("ascii")
    if not text.startswith("/"):
        text = _origin_form(text, method)
    path, _, query = text.partition("?")
    return path, query


def _origin_form(target: str, method: str) -> str:
    if target == "*" and method == "OPTIONS":
        return target
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        raise Refusal(400, f"request target {target!r} is not a path")
    for position, character in enumerate(rest):
        if character in "/?":
            return rest[position:] if character == "/" else f"/{rest[position:]}"
    return "/"


_LINE = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) (/[!-~]*) HTTP/1\.1(?=\r\n)")
_LENGTH = re.compile(rb"\r\ncontent-length: ([0-9]{1,9})\r\n", re.IGNORECASE)
_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Fields:
    """The header fields of a request, as bytes and as they were understood."""

    before: bytes
    """From the end of the request line to the length of the body; of a read, to the end."""
    after: bytes
    """From that length to the end of the header; empty if there is no body."""
    headers: Headers

    @classmethod
    def of(cls, data: bytes, headers: Headers) -> Fields | None:
        """Those of a whole request; None if its form is not one that can be recognised."""
        line = _LINE.match(data)
        end = data.find(_END) + len(_END)
        if line is None or end < len(_END):
            return None
        if line[1] == b"GET":
            return cls(data[line.end() :], b"", headers) if end == len(data) else None
        length = _LENGTH.search(data, line.end(), end)
        if length is None:
            return None
        return cls(data[line.end() : length.start(1)], data[length.end(1) : end], headers)

    def repeated_by(self, data: bytes, peer: Peer) -> Request | None:
        """The request that `data` is, if it is exactly one with these fields."""
        line = _LINE.match(data)
        if line is None or not data.startswith(self.before, line.end()):
            return None
        headers, body, at = self.headers, b"", line.end() + len(self.before)
        if self.after:
            start, at = at, data.find(b"\r", at)
            length = data[start:at]
            body = data[at + len(self.after) :]
            if not (data.startswith(self.after, at) and length == b"%d" % len(body)):
                return None
            headers = headers.with_value("content-length", length.decode())
        elif at != len(data) or line[1] != b"GET":
            return None
        path, _, query = line[2].decode("ascii").partition("?")
        return Request(_METHODS[line[1]], path, query, headers, body, peer)


_METHODS = {name.encode(): name for name in ("GET", "POST", "PUT", "PATCH", "DELETE")}
