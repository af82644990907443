"""What an operation that failed is answered with."""

from __future__ import annotations

import pytest

from kvestigate import errors
from kvestigate.cybernet.refusals import NotAllowed, from_failure
from kvestigate.errors import KvestigateError
from kvestigate.node_access.reach import Unreachable


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (errors.UsageError("x"), 422, "constraint_violated"),
        (errors.InputError("x"), 422, "constraint_violated"),
        (errors.NotFound("x"), 404, "not_found"),
        (errors.AlreadyExists("x"), 409, "conflict"),
        (errors.Conflict("x"), 409, "conflict"),
        (errors.ConnectionFailed("x"), 503, "unavailable"),
        (Unreachable("x"), 503, "unavailable"),
        (errors.DeadlineExceeded("x"), 504, "timeout"),
        # Ours would be the token's: what the gateway itself may not do is no refusal of the caller.
        (errors.Forbidden("x"), 500, "execution_error"),
        (KvestigateError("x"), 500, "execution_error"),
    ],
    ids=lambda it: type(it).__name__ if isinstance(it, Exception) else str(it),
)
def test_each_failure_has_its_status(failure: KvestigateError, status: int, code: str) -> None:
    found = from_failure(failure)
    assert (found.status, found.code) == (status, code)
    assert found.envelope()["error"]["reason"] == code


def test_what_was_refused_already_stays_what_it_is() -> None:
    refusal = NotAllowed("x", "operations.allow", hint="y")
    assert from_failure(refusal) is refusal
    told = {"code": "not_allowed", "message": "x; y", "reason": "operations.allow"}
    assert refusal.envelope() == {"error": told}


@pytest.mark.parametrize(
    ("hint", "kept"),
    [
        ("did you mean 'node-1'?", True),
        ("try again", True),
        ("add --apply", False),
        ("`kvestigate report run nodes` lists them", False),
        ("kvestigate workspace ps --config FILE", False),
        ("namespace 'shop': add -n shop", False),
        ("use node-access instead", True),
    ],
)
def test_agents_are_told_of_no_command_line(hint: str, kept: bool) -> None:
    message = from_failure(errors.NotFound("x", hint=hint)).envelope()["error"]["message"]
    assert message == (f"x; {hint}" if kept else "x")
