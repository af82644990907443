"""The one tree of expected failures, and the one place that maps them to codes.

    KvestigateError                   exit 1
    x UsageError                      exit 2   a flag, an argument or a missing confirmation
      + InputError                             a value or a file that does not parse
    x NoCluster                       exit 3   nothing to talk to
      + ConfigError                            the kubeconfig cannot be used
      + ConnectionFailed                       refused, unresolvable, TLS
    x DeadlineExceeded                exit 7   we stopped waiting
    x ApiError                        exit 1   the API server said no: a Kubernetes Status
      + BadRequest               400  exit 2
      + Unauthorized             401  exit 4
      + Forbidden                403  exit 4
      + NotFound                 404  exit 5
      + MethodNotAllowed         405
      + NotAcceptable            406
      + AlreadyExists            409  exit 6
      + Conflict                 409  exit 6
      + Gone                     410
      + Expired                  410
      + RequestEntityTooLarge    413
      + UnsupportedMediaType     415
      + Invalid                  422  exit 2
      + TooManyRequests          429  exit 6
      + InternalError            500
      + ServerTimeout            500  exit 7
      + ServiceUnavailable       503  exit 3
      + Timeout                  504  exit 7

Each class carries its own HTTP code, Kubernetes reason and exit code, so nothing else in
the project maps one to another. A message says what is wrong with which field and value; a
hint says the way out, usually as the next command to type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NO_CLUSTER = 3
EXIT_DENIED = 4
EXIT_NOT_FOUND = 5
EXIT_CONFLICT = 6
EXIT_TIMEOUT = 7
EXIT_INTERRUPTED = 130


class KvestigateError(Exception):
    """An expected failure: shown as a sentence, never as a traceback."""

    exit_code: int = EXIT_FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(KvestigateError):
    exit_code = EXIT_USAGE


class InputError(UsageError):
    """A value that does not parse; `where` is `file:line:column` or a field path."""

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"{where}: {message}" if where else message, hint=hint)
        self.where = where


class NoCluster(KvestigateError):
    exit_code = EXIT_NO_CLUSTER


class ConfigError(NoCluster):
    pass


class ConnectionFailed(NoCluster):
    pass


class DeadlineExceeded(KvestigateError):
    exit_code = EXIT_TIMEOUT


class ApiError(KvestigateError):
    """A Kubernetes `Status` with `status: Failure`, received or about to be sent."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        code: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.details: dict[str, Any] = dict(details or {})
        self.has_details = details is not None
        """Whether a Status shows them even if they are empty, as those of generic errors are."""
        self.http_code = self.code if code is None else code

    @property
    def causes(self) -> Sequence[Mapping[str, str]]:
        """`[{reason, message, field}]` of a 422, empty otherwise."""
        causes: Sequence[Mapping[str, str]] = self.details.get("causes") or ()
        return causes

    @property
    def retry_after(self) -> float | None:
        seconds = self.details.get("retryAfterSeconds")
        return None if not seconds else float(seconds)


class BadRequest(ApiError):
    code, reason, exit_code = 400, "BadRequest", EXIT_USAGE


class Unauthorized(ApiError):
    code, reason, exit_code = 401, "Unauthorized", EXIT_DENIED


class Forbidden(ApiError):
    code, reason, exit_code = 403, "Forbidden", EXIT_DENIED


class NotFound(ApiError):
    code, reason, exit_code = 404, "NotFound", EXIT_NOT_FOUND


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    code, reason, exit_code = 409, "AlreadyExists", EXIT_CONFLICT


class Conflict(ApiError):
    code, reason, exit_code = 409, "Conflict", EXIT_CONFLICT


class Gone(ApiError):
    code, reason = 410, "Gone"


class Expired(ApiError):
    code, reason = 410, "Expired"


class RequestEntityTooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason, exit_code = 422, "Invalid", EXIT_USAGE


class TooManyRequests(ApiError):
    code, reason, exit_code = 429, "TooManyRequests", EXIT_CONFLICT


class InternalError(ApiError):
    code, reason = 500, "InternalError"


class ServerTimeout(ApiError):
    code, reason, exit_code = 500, "ServerTimeout", EXIT_TIMEOUT


class ServiceUnavailable(ApiError):
    code, reason, exit_code = 503, "ServiceUnavailable", EXIT_NO_CLUSTER


class Timeout(ApiError):
    code, reason, exit_code = 504, "Timeout", EXIT_TIMEOUT


API_ERRORS: tuple[type[ApiError], ...] = (
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
)

_BY_REASON = {error.reason: error for error in API_ERRORS}

# Proxies and webhooks answer without a Status: then the HTTP code alone decides. The first
# class listed for a code is the one a bare code means.
_BY_CODE: dict[int, type[ApiError]] = {
    error.code: error for error in reversed(API_ERRORS) if error is not AlreadyExists
}


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The known name that was probably meant; empty if none is similar.

    A name with another number is another thing: nobody who types node-9 means node-8.
    """
    import difflib  # only ever needed on the way out

    similar = [other for other in sorted(known) if not differs_in_number(name, other)]
    return next(iter(difflib.get_close_matches(name, similar, n=1, cutoff=cutoff)), "")


def differs_in_number(name: str, other: str) -> bool:
    """Whether the names are the same but for the numbers in them: node-9 and node-08."""
    import re

    def parts(text: str) -> tuple[list[str], list[int]]:
        return re.split("[0-9]+", text.lower()), [int(n[:18]) for n in re.findall("[0-9]+", text)]

    (words, numbers), (other_words, other_numbers) = parts(name), parts(other)
    return bool(numbers) and words == other_words and numbers != other_numbers


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The hint for a name that does not exist: a similar name, or the way to all of them."""
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else otherwise


def from_status(status: Mapping[str, Any], *, code: int) -> ApiError:
    """The exception for a Status received with HTTP `code`."""
    error = _BY_REASON.get(status.get("reason") or "") or _BY_CODE.get(code, ApiError)
    message = status.get("message") or f"the server answered {code}"
    return error(message, details=status.get("details"), code=status.get("code") or code)


def to_status(error: ApiError) -> dict[str, Any]:
    """The Status to send for an exception."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
    }
    if error.reason:
        status["reason"] = error.reason
    if error.details or error.has_details:
        status["details"] = error.details
    status["code"] = error.http_code
    return status
