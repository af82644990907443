"""A cyberspace's gateway over HTTP, with the standard library alone.

    client = CybernetClient("http://127.0.0.1:8765", token)
    client.call("report.run", {"name": "nodes"})

CybernetError
x Unauthenticated       401: no token, or one that is not known
x NotAllowed            403: an operation or a workspace that is not yours
x NoSuchThing           404
x ConflictFound         409: it is there already and differs, or is taken
x QuotaExceeded         409: there would be more than the operator allows
x ConstraintViolated    422: a parameter or a host that the operator does not allow
x OperationFailed       every other answer: it was tried and did not work
  + Malformed           400
  + TooLarge            413
  + RateLimited         429
  + Unavailable         502, 503: the gateway or its cluster is not there for the moment
  + TookTooLong         504
x GatewayUnreachable    no answer at all

A gateway that was there before may be away for a moment, because it is started anew. Then a call
is repeated, with growing pauses, for as long as the client's `patience`:

- always, if nothing was done: the connection was refused, or the answer has `Retry-After`;
- if that cannot be known, only where doing it twice is the same as doing it once: operations that
  read, and those in REPEATABLE. All others are raised with `unclear` set: look, then decide.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

CALL_TIMEOUT = 900.0
PATIENCE = 60.0
"""Seconds for which a gateway that was there before may be away."""
UNTRUSTED, TIMED_OUT = "untrusted", "timed_out"
"""Codes of GatewayUnreachable for which waiting is no remedy."""
REPEATABLE = frozenset({"workspace.create", "workspace.sync", "workspace.destroy"})
"""Operations that change something, and nothing more when they are repeated: a workspace that is
there is left as it is, files that are equal are not sent again, and what is gone stays gone."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


class CybernetError(Exception):
    """A call that was not carried out; `reason` is the rule that decided."""

    def __init__(self, message: str, status: int = 0, code: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.reason = reason
        self.unclear = False
        """Whether it may have been carried out all the same."""
        self.retry_after: float | None = None
        """Seconds; nothing was done, and the same call may be made again."""


class Unauthenticated(CybernetError):
    pass


class NotAllowed(CybernetError):
    pass


class NoSuchThing(CybernetError):
    pass


class ConflictFound(CybernetError):
    pass


class QuotaExceeded(CybernetError):
    pass


class ConstraintViolated(CybernetError):
    pass


class OperationFailed(CybernetError):
    pass


class Malformed(OperationFailed):
    pass


class TooLarge(OperationFailed):
    pass


class RateLimited(OperationFailed):
    pass


class Unavailable(OperationFailed):
    pass


class TookTooLong(OperationFailed):
    pass


class GatewayUnreachable(CybernetError):
    pass


_BY_STATUS: Mapping[int, type[CybernetError]] = {
    400: Malformed,
    401: Unauthenticated,
    403: NotAllowed,
    404: NoSuchThing,
    409: ConflictFound,
    413: TooLarge,
    422: ConstraintViolated,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: TookTooLong,
}


class _StayHere(urllib.request.HTTPRedirectHandler):
    """A gateway never sends elsewhere; whoever does wants the token."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class CybernetClient:
    """Calls the operations that one cyberspace offers."""

    def __init__(
        self,
        base_url: str,
        token: str = "",
        *,
        timeout: float = CALL_TIMEOUT,
        ca: str | None = None,
        patience: float = PATIENCE,
    ) -> None:
        """`ca` are the only authorities to trust, PEM; the system's if None."""
        url = base_url.rstrip("/")
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise ValueError(f"base_url: {base_url!r} does not begin with http:// or https://")
        if any(character.isspace() for character in token) or not token.isascii():
            raise ValueError("token: has characters that no token has")
        self.base_url = url
        self._token = token
        self._timeout = timeout
        self._patience = patience
        self._met = False
        """Whether a gateway has ever answered here."""
        self._reads: frozenset[str] | None = None
        """Names of the operations that change nothing, once they are known."""
        self._opener = urllib.request.build_opener(_StayHere(), *_trusting(ca))

    def __repr__(self) -> str:
        return f"CybernetClient({self.base_url!r})"

    def info(self) -> dict[str, Any]:
        """What the cyberspace offers, its constraints and its quotas; needs no token."""
        found: dict[str, Any] = self._patiently("/info", None, lambda: True)
        return found

    def call(self, operation: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Carry out an operation; its result, or a CybernetError that says why there is none."""
        path = f"/api/v1/op/{urllib.parse.quote(operation, safe='')}"
        body = json.dumps(dict(parameters or {})).encode()
        return self._patiently(path, body, lambda: self._may_repeat(operation))

    def _may_repeat(self, operation: str) -> bool:
        if operation in REPEATABLE:
            return True
        if self._reads is None:
            offers = self.info().get("operations") or ()
            self._reads = frozenset(it["name"] for it in offers if it.get("effect") == "read")
        return operation in self._reads

    def _patiently(self, path: str, body: bytes | None, may_repeat: Callable[[], bool]) -> Any:
        pause, deadline = _SHORTEST_PAUSE, None
        while True:
            try:
                return self._ask(path, body)
            except (GatewayUnreachable, Unavailable) as failure:
                now = time.monotonic()
                deadline = deadline or now + self._patience
                wait = max(pause * random.uniform(0.5, 1.0), failure.retry_after or 0.0)
                if not self._passes(failure) or now + wait > deadline:
                    raise
                if failure.unclear and not may_repeat():
                    raise
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _passes(self, failure: CybernetError) -> bool:
        """Whether it will pass: the gateway, or what is before it, says so, or was there before."""
        if failure.retry_after is not None:
            return True
        if isinstance(failure, GatewayUnreachable):
            return self._met and failure.code not in (UNTRUSTED, TIMED_OUT)
        return self._met and (failure.reason == "stopped" or not failure.code)

    def _ask(self, path: str, body: bytes | None) -> Any:
        request = urllib.request.Request(f"{self.base_url}{path}", data=body)
        request.add_header("Accept", "application/json")
        request.add_header("User-Agent", "kvestigate-client")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            if self._token:
                request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                value = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                refusal = _refusal(error.code, error.headers.get("Retry-After", ""), error.read())
            self._met = self._met or bool(refusal.code)
            raise refusal from None
        except urllib.error.URLError as error:
            raise self._unreachable(error.reason) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unreachable(error) from None
        self._met = True
        return value

    def _unreachable(self, why: object) -> GatewayUnreachable:
        if isinstance(why, ssl.SSLCertVerificationError):
            said = f"{self.base_url}: its certificate is not trusted: {why.verify_message}"
            return GatewayUnreachable(said, code=UNTRUSTED)
        code = TIMED_OUT if isinstance(why, TimeoutError) else ""
        failure = GatewayUnreachable(f"{self.base_url} gave no answer: {why}", code=code)
        failure.unclear = not isinstance(why, ConnectionRefusedError | socket.gaierror)
        return failure


def _trusting(ca: str | None) -> list[urllib.request.BaseHandler]:
    if ca is None:
        return []
    try:
        context = ssl.create_default_context(cadata=ca)
    except ssl.SSLError as error:
        why = error.reason or "there is none in it"
        raise ValueError(f"ca: is no PEM certificate: {why}") from None
    return [urllib.request.HTTPSHandler(context=context)]


def _refusal(status: int, after: str, body: bytes) -> CybernetError:
    try:
        told = json.loads(body)["error"]
        message, code, reason = (str(told.get(key, "")) for key in ("message", "code", "reason"))
    except (ValueError, KeyError, TypeError, AttributeError):
        said = " ".join(body[:200].decode("utf-8", "replace").split())
        message, code, reason = f"the gateway answered {status} {said}".strip(), "", ""
    kind = _BY_STATUS.get(status, OperationFailed)
    if code == "quota_exceeded":
        kind = QuotaExceeded
    refusal = kind(message, status, code, reason)
    if after.isdecimal() and len(after) < 6:
        refusal.retry_after = float(after)
    refusal.unclear = kind is Unavailable and refusal.retry_after is None
    return refusal
