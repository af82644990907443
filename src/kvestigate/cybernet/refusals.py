"""Why a request is not carried out, for the answer of every front and for the record. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kvestigate import errors
from kvestigate.cybernet.leaving import redacted_text
from kvestigate.errors import KvestigateError
from kvestigate.node_access.reach import Unreachable


class Refused(KvestigateError):
    """A request that ends here. The classes below are the only kinds that there are."""

    status = 500
    code = "execution_error"

    def __init__(self, message: str, reason: str = "", *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason or self.code
        """The rule that decided: `constraints.hosts.allow_names`."""
        self.retry_after: int | None = None
        """Seconds after which the same request may be tried again: nothing of it was done."""

    def envelope(self) -> dict[str, Any]:
        """What every front answers."""
        message = f"{_cut(self.message)}; {self.hint}" if self.hint else _cut(self.message)
        return {"error": {"code": self.code, "message": message, "reason": _cut(self.reason)}}


_LONGEST = 2_000
"""Characters of a message: it may quote what was sent."""


def _cut(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."


class Malformed(Refused):
    status, code = 400, "malformed"


class Unauthenticated(Refused):
    status, code = 401, "unauthenticated"
    exit_code = errors.EXIT_DENIED


class NotAllowed(Refused):
    status, code = 403, "not_allowed"
    exit_code = errors.EXIT_DENIED


class NoSuchThing(Refused):
    status, code = 404, "not_found"
    exit_code = errors.EXIT_NOT_FOUND


class WrongMethod(Refused):
    status, code = 405, "wrong_method"


class Conflicting(Refused):
    status, code = 409, "conflict"
    exit_code = errors.EXIT_CONFLICT


class QuotaExceeded(Refused):
    status, code = 409, "quota_exceeded"
    exit_code = errors.EXIT_CONFLICT


class TooLarge(Refused):
    status, code = 413, "too_large"


class ConstraintViolated(Refused):
    status, code = 422, "constraint_violated"
    exit_code = errors.EXIT_USAGE


class TooManyRequests(Refused):
    status, code = 429, "rate_limited"
    exit_code = errors.EXIT_CONFLICT


class Unavailable(Refused):
    status, code = 503, "unavailable"
    exit_code = errors.EXIT_NO_CLUSTER


class TookTooLong(Refused):
    status, code = 504, "timeout"
    exit_code = errors.EXIT_TIMEOUT


RETRY_SECONDS = 1
"""For `Retry-After`, when the reason may be gone soon."""


def busy() -> Unavailable:
    refusal = Unavailable("the gateway is busy: too many operations are running", hint="try again")
    refusal.retry_after = RETRY_SECONDS
    return refusal


def too_many_failures() -> TooManyRequests:
    refusal = TooManyRequests(
        "too many requests without a known token", "auth.tokens", hint="check the token"
    )
    refusal.retry_after = 60
    return refusal


DENIALS = (
    Malformed,
    Unauthenticated,
    NotAllowed,
    QuotaExceeded,
    ConstraintViolated,
    TooManyRequests,
)
"""The request was refused by us, and nothing was tried."""

_OF_FAILURES: Mapping[type[KvestigateError], type[Refused]] = {
    errors.UsageError: ConstraintViolated,
    errors.BadRequest: ConstraintViolated,
    errors.Invalid: ConstraintViolated,
    errors.NotFound: NoSuchThing,
    errors.AlreadyExists: Conflicting,
    errors.Conflict: Conflicting,
    errors.RequestEntityTooLarge: TooLarge,
    errors.TooManyRequests: TooManyRequests,
    errors.NoCluster: Unavailable,
    Unreachable: Unavailable,
    errors.ServiceUnavailable: Unavailable,
    errors.DeadlineExceeded: TookTooLong,
    errors.Timeout: TookTooLong,
}


_COMMAND_LINE = re.compile(r"\b(?:kvestigate|k8s-cli|kubectl) |(?<!\S)`?--?[a-zA-Z]")


def of_command_line(text: str) -> bool:
    """Whether a text speaks of commands or flags: agents have operations, and no command line."""
    return _COMMAND_LINE.search(text) is not None


def from_failure(failure: KvestigateError) -> Refused:
    """What an operation that failed is answered with."""
    if isinstance(failure, Refused):
        return failure
    hint = failure.hint
    if hint and ("`" in hint or of_command_line(hint)):
        hint = None
    message = redacted_text(failure.message)  # it may quote what the cluster has said
    for kind, refusal in _OF_FAILURES.items():
        if isinstance(failure, kind):
            return refusal(message, hint=hint)
    return Refused(message, hint=hint)
