"""A cyberspace somewhere else, asked through the agents' SDK; its failures as ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvestigate import errors
from kvestigate.errors import KvestigateError
from kvestigate_client import gateway as sdk

_SHORT = 10.0
"""Seconds within which a server tells what it is."""

_KINDS: Mapping[type[sdk.CybernetError], type[KvestigateError]] = {
    sdk.Unauthenticated: errors.Unauthorized,
    sdk.NotAllowed: errors.Forbidden,
    sdk.NoSuchThing: errors.NotFound,
    sdk.ConflictFound: errors.Conflict,
    sdk.QuotaExceeded: errors.Conflict,
    sdk.ConstraintViolated: errors.Invalid,
    sdk.GatewayUnreachable: errors.ConnectionFailed,
}
_BY_STATUS: Mapping[int, type[KvestigateError]] = {
    400: errors.BadRequest,
    413: errors.RequestEntityTooLarge,
    429: errors.TooManyRequests,
    503: errors.ServiceUnavailable,
    504: errors.Timeout,
}
_HINTS: Mapping[type[sdk.CybernetError], str] = {
    sdk.Unauthenticated: "put the token into KVESTIGATE_CYBERNET_TOKEN",
    sdk.NotAllowed: "`kvestigate cybernet status URL` lists what is allowed",
    sdk.GatewayUnreachable: "start it with `kvestigate cybernet serve --config FILE`",
}


def info(url: str, ca: str | None = None) -> dict[str, Any]:
    """What the cyberspace tells anybody. `ca` are the authorities to trust, PEM."""
    try:
        found = _client(url, "", _SHORT, ca).info()
    except sdk.CybernetError as error:
        raise _ours(error) from error
    if not isinstance(found, dict) or not isinstance(found.get("operations"), list):
        raise errors.ConnectionFailed(f"what answers at {url} is no cyberspace")
    return found


def carry_out(
    url: str,
    token: str,
    operation: str,
    parameters: Mapping[str, Any],
    ca: str | None = None,
) -> Any:
    try:
        return _client(url, token, sdk.CALL_TIMEOUT, ca).call(operation, parameters)
    except sdk.CybernetError as error:
        raise _ours(error) from error


def _client(url: str, token: str, timeout: float, ca: str | None) -> sdk.CybernetClient:
    try:
        return sdk.CybernetClient(url, token, timeout=timeout, ca=ca, patience=0)
    except ValueError as error:
        hint = None if str(error).startswith("ca:") else "write http://localhost:8765"
        raise errors.UsageError(str(error), hint=hint) from None


def _ours(error: sdk.CybernetError) -> KvestigateError:
    kind = _KINDS.get(type(error)) or _BY_STATUS.get(error.status, KvestigateError)
    if error.code == sdk.UNTRUSTED:
        return kind(error.message, hint="--ca-file FILE names who signed it, in PEM")
    return kind(error.message, hint=_HINTS.get(type(error)))
