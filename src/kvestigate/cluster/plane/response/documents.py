"""Documents that are made once and served many times: bytes with an entity tag."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from kvestigate.http.message import Request, Response


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Document:
    body: bytes
    media: str = "application/json"
    digest: str = field(init=False)
    """Of the content, in upper-case hexadecimal."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha512(self.body).hexdigest().upper())

    @property
    def tag(self) -> str:
        return f'"{self.digest}"'

    def answer(self, request: Request, caching: str) -> Response:
        """The document, or 304 for a client that has it."""
        headers = [("cache-control", caching), ("etag", self.tag), ("vary", "Accept")]
        if self.tag in request.headers.get("if-none-match"):
            return Response(304, headers)
        return Response(200, [*headers, ("content-type", self.media)], self.body)
