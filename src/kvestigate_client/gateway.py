"""A cyberspace's gateway over HTTP, with the standard library alone.

    client = CybernetClient("http://127.0.0.1:8765", token)
    client.call("report.run", {"name": "nodes"})

CybernetError
x Unauthenticated       401: no token, or one that is not known
x NotAllowed            403: an operation or a workspace that is not yours
x NoSuchThing           404
x ConflictFound         409: it is there already and differs
x QuotaExceeded         409: there would be more than the operator allows
x ConstraintViolated    422: a parameter or a host that the operator does not allow
x OperationFailed       every other answer: it was tried and did not work
x GatewayUnreachable    no answer at all
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

CALL_TIMEOUT = 900.0
UNTRUSTED = "untrusted"


class CybernetError(Exception):
    """A call that was not carried out; `reason` is the rule that decided."""

    def __init__(self, message: str, status: int = 0, code: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.reason = reason


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


class GatewayUnreachable(CybernetError):
    pass


_BY_STATUS: Mapping[int, type[CybernetError]] = {
    401: Unauthenticated,
    403: NotAllowed,
    404: NoSuchThing,
    409: ConflictFound,
    422: ConstraintViolated,
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
        self._opener = urllib.request.build_opener(_StayHere(), *_trusting(ca))

    def __repr__(self) -> str:
        return f"CybernetClient({self.base_url!r})"

    def info(self) -> dict[str, Any]:
        """What the cyberspace offers, its constraints and its quotas; needs no token."""
        found: dict[str, Any] = self._ask("/info")
        return found

    def call(self, operation: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Carry out an operation; its result, or a CybernetError that says why there is none."""
        path = f"/api/v1/op/{urllib.parse.quote(operation, safe='')}"
        return self._ask(path, json.dumps(dict(parameters or {})).encode())

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(f"{self.base_url}{path}", data=body)
        request.add_header("Accept", "application/json")
        request.add_header("User-Agent", "kvestigate-client")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            if self._token:
                request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error.code, error.read()) from None
        except urllib.error.URLError as error:
            raise self._unreachable(error.reason) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unreachable(error) from None

    def _unreachable(self, why: object) -> GatewayUnreachable:
        if isinstance(why, ssl.SSLCertVerificationError):
            said = f"{self.base_url}: its certificate is not trusted: {why.verify_message}"
            return GatewayUnreachable(said, code=UNTRUSTED)
        return GatewayUnreachable(f"{self.base_url} gave no answer: {why}")


def _trusting(ca: str | None) -> list[urllib.request.BaseHandler]:
    if ca is None:
        return []
    try:
        context = ssl.create_default_context(cadata=ca)
    except ssl.SSLError as error:
        why = error.reason or "there is none in it"
        raise ValueError(f"ca: is no PEM certificate: {why}") from None
    return [urllib.request.HTTPSHandler(context=context)]


def _refusal(status: int, body: bytes) -> CybernetError:
    try:
        told = json.loads(body)["error"]
        message, code, reason = (str(told.get(key, "")) for key in ("message", "code", "reason"))
    except (ValueError, KeyError, TypeError, AttributeError):
        said = " ".join(body[:200].decode("utf-8", "replace").split())
        message, code, reason = f"the gateway answered {status} {said}".strip(), "", ""
    kind = _BY_STATUS.get(status, OperationFailed)
    if code == "quota_exceeded":
        kind = QuotaExceeded
    return kind(message, status, code, reason)
