"""Requests that repeat the header fields of an earlier one of their connection. Pure.

Clients send the same fields with every request, but for the length of the body. Once the parser
has found them good, comparing the bytes is enough, and only the request line and that length
are looked at. What is not exactly alike, or does not come whole in one segment, is the parser's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kvestigate.http.message import Headers, Peer, Request

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
