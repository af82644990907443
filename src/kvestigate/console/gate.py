"""What stands before every page: which requests are let in, and what browsers are told.

The console acts with the operator's own rights, and any page in the operator's browser can send
requests to loopback. So, in this order:

* the Host header must name this machine and our port (DNS rebinding);
* a request that another site made the browser send is refused, but for following a link, and a
  frame around us as well (`Sec-Fetch-*`, and `frame-ancestors` in the answer);
* there must be a session (`sessions`);
* whatever is not GET or HEAD must come from our own origin and repeat the session's form token.

Every answer, also a refusal, has a policy that lets no inline script or style run and contacts no
other host: a text that somehow was not escaped would still do nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qs, quote

from kvestigate.console.frame import bare_page
from kvestigate.console.markup import Html, element
from kvestigate.console.sessions import Sessions, form_token, same
from kvestigate.http.hosts import is_own

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

FORM_TOKEN = "form-token"
"""The field of every form."""
TOKEN = "token"
"""The parameter of the URL that is printed."""
SIGN_IN = "/sign-in"
MOST_BODY = 1 << 20
"""Bytes of a form: a manifest fits."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "font-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("content-security-policy", _POLICY),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)
_SAFE = ("GET", "HEAD")
_MOST_COOKIES = 16


class Gate:
    """An ASGI application around the console's own."""

    def __init__(self, app: App, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await _refuse_other(scope, send)
        request = _Head(scope)
        refusal = self._refusal(request)
        if refusal is not None:
            return await _answer(send, *refusal)
        if request.path == SIGN_IN and request.method == "GET":
            return await self._sign_in(request, send)
        session = next(filter(self._sessions.knows, request.cookies), None)
        if session is None:
            return await _answer(send, *_stranger(request))
        scope["state"] = {"session": session, "form_token": form_token(session)}
        if request.method not in _SAFE:
            body = await _body(receive)
            if body is None:
                return await _answer(send, 413, _said("The form is larger than 1 MiB."))
            given = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
            if not same(given.get(FORM_TOKEN, [""])[0], form_token(session)):
                return await _answer(send, 403, _said(_FOREIGN_FORM))
            scope["state"]["form"] = given
        await self._app(scope, receive, _with_headers(send))
        return None

    def _refusal(self, request: _Head) -> tuple[int, Html] | None:
        if not request.names_us:
            return 421, _said("This is not the name of this console. Use the address it printed.")
        if request.is_foreign:
            return 403, _said("Another site may not read the console.")
        if request.method not in _SAFE and request.header("origin") != request.origin:
            return 403, _said("Another site may not send forms to the console.")
        return None

    async def _sign_in(self, request: _Head, send: Send) -> None:
        session = self._sessions.redeem(request.parameter(TOKEN))
        if session is None:
            return await _answer(send, 403, _said(_SPENT))
        cookie = f"{request.cookie_name}={session}; HttpOnly; SameSite=Strict; Path=/"
        # Not a redirect: after a click in another site's page the browser would follow it
        # without the cookie, which is sent only with requests that our own pages cause.
        await _answer(send, 200, _onward("/"), ("set-cookie", cookie))
        return None


_SPENT = (
    "The token of this address was used before, or is not one. The terminal in which the console "
    "runs shows the address for the next browser."
)
_FOREIGN_FORM = "This form was not made by this console. Go back, reload the page and try again."


class _Head:
    """What the first lines of a request say."""

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._query: bytes = scope.get("query_string", b"")
        self._headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            self._headers.setdefault(name.decode("latin-1").lower(), []).append(
                value.decode("latin-1")
            )
        self._address, self._port = scope["server"][:2]

    def header(self, name: str) -> str:
        """The value; empty if the header is missing or there are two, which nobody should send."""
        values = self._headers.get(name, [])
        return values[0] if len(values) == 1 else ""

    def parameter(self, name: str) -> str:
        return parse_qs(self._query.decode("latin-1")).get(name, [""])[0]

    @property
    def names_us(self) -> bool:
        return is_own(self.header("host"), self._address, self._port, ())

    @property
    def origin(self) -> str:
        return f"http://{self.header('host')}"

    @property
    def is_foreign(self) -> bool:
        """Whether a page of another origin made the browser send it, and it follows no link.

        A server on another port of this machine is the same site to browsers, but not to us.
        Programs, and browsers from before 2023, send no such header.
        """
        if self.header("sec-fetch-dest") in ("iframe", "frame", "embed", "object"):
            return True
        if self.header("sec-fetch-site") in ("", "same-origin", "none"):
            return False
        return self.header("sec-fetch-mode") != "navigate" or self.method not in _SAFE

    @property
    def came_from_elsewhere(self) -> bool:
        """Whether it follows a link of another site, and so has no cookie yet."""
        return self.header("sec-fetch-site") in ("cross-site", "same-site")

    @property
    def here(self) -> str:
        """The same address again."""
        query = quote(self._query.decode("latin-1"), safe="=&%+~-._")
        return quote(self.path) + (f"?{query}" if query else "")

    @property
    def cookie_name(self) -> str:
        """Cookies do not know ports: two consoles must not end each other's sessions."""
        return f"kvestigate-console-{self._port}"

    @property
    def cookies(self) -> list[str]:
        """Every value that has come under our name, at most a few.

        Programs on other ports of this machine set cookies for us, too, of our name and of any
        form. None of them may hide ours, so each is looked at by itself.
        """
        pairs = (pair.partition("=") for pair in self.header("cookie").split(";"))
        found = [value.strip() for name, _, value in pairs if name.strip() == self.cookie_name]
        return found[:_MOST_COOKIES]


def _stranger(request: _Head) -> tuple[int, Html]:
    if request.came_from_elsewhere and request.here.startswith("/") and request.path[:2] != "//":
        return 200, _onward(request.here)
    return 401, _said(
        "You are not signed in. Open the address that `kvestigate ui` printed in its terminal."
    )


def _said(words: str) -> Html:
    return bare_page("Not here", element("p", words))


def _onward(target: str) -> Html:
    link = element("a", "Continue to the console", href=target)
    refresh = element("meta", http_equiv="refresh", content=f"0; url={target}")
    return bare_page("One moment", element("p", link), head=refresh)


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None if it is too large."""
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        size += len(message.get("body", b""))
        if size > MOST_BODY:
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


async def _answer(send: Send, status: int, page: Html, *headers: tuple[str, str]) -> None:
    body = str(page).encode()
    fields = [*headers, ("content-type", "text/html; charset=utf-8"), *HEADERS]
    fields.append(("content-length", str(len(body))))
    encoded = [(name.encode(), value.encode()) for name, value in fields]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


async def _refuse_other(scope: Scope, send: Send) -> None:
    """No page uses WebSockets."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own: Mapping[bytes, bytes] = {name.encode(): value.encode() for name, value in HEADERS}
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in own]
            message = {**message, "headers": [*kept, *own.items()]}
        await send(message)

    return sending
