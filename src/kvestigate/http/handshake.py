"""The HTTP half of opening a WebSocket (RFC 6455, section 4), for both sides."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Sequence

from websockets.utils import accept_key

from kvestigate.http.message import Headers, Request

_VERSION = "13"


class Offer:
    """What a client asks for, and whether the answer agrees."""

    def __init__(self, subprotocols: Sequence[str]) -> None:
        self._subprotocols = subprotocols
        self._key = base64.b64encode(secrets.token_bytes(16)).decode("ascii")

    def fields(self) -> list[tuple[str, str]]:
        fields = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", _VERSION),
            ("sec-websocket-key", self._key),
        ]
        if self._subprotocols:
            fields.append(("sec-websocket-protocol", ", ".join(self._subprotocols)))
        return fields

    def accepted(self, headers: Headers) -> str | None:
        """The subprotocol that was agreed on; ValueError if the answer is not for this offer."""
        if headers.get("upgrade").lower() != "websocket":
            raise ValueError(f"upgrade is {headers.get('upgrade')!r}")
        if headers.get("sec-websocket-accept") != accept_key(self._key):
            raise ValueError("sec-websocket-accept is not for our key")
        if "sec-websocket-extensions" in headers:
            raise ValueError("an extension that was not offered")
        subprotocol = headers.get("sec-websocket-protocol") or None
        if subprotocol is not None and subprotocol not in self._subprotocols:
            raise ValueError(f"subprotocol {subprotocol!r} was not offered")
        return subprotocol


def offered_subprotocols(request: Request) -> list[str]:
    """What the client of a WebSocket request offers, in its order of preference."""
    fields = request.headers.get_all("sec-websocket-protocol")
    return [name.strip() for field in fields for name in field.split(",") if name.strip()]


def wants_websocket(request: Request) -> bool:
    return request.method == "GET" and request.headers.get("upgrade").lower() == "websocket"


def accept(request: Request, subprotocol: str | None) -> list[tuple[str, str]]:
    """The fields of the 101; ValueError if `request` is no valid offer."""
    if not wants_websocket(request):
        raise ValueError("not a WebSocket request")
    connection = ",".join(request.headers.get_all("connection")).lower()
    if "upgrade" not in (token.strip() for token in connection.split(",")):
        raise ValueError("connection does not name upgrade")
    if request.headers.get("sec-websocket-version") != _VERSION:
        raise ValueError("sec-websocket-version is not 13")
    key = request.headers.get("sec-websocket-key")
    try:
        if len(base64.b64decode(key, validate=True)) != 16:
            raise ValueError("sec-websocket-key is not 16 bytes")
    except binascii.Error as failure:
        raise ValueError("sec-websocket-key is not base64") from failure
    fields = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-accept", accept_key(key)),
    ]
    if subprotocol is not None:
        if subprotocol not in offered_subprotocols(request):
            raise ValueError(f"subprotocol {subprotocol!r} was not offered")
        fields.append(("sec-websocket-protocol", subprotocol))
    return fields
