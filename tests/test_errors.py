"""The error tree is complete and says of itself what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kvestigate import errors
from kvestigate.errors import (
    API_ERRORS,
    ApiError,
    KvestigateError,
    from_status,
    nearest,
    to_status,
)


def subclasses(cls: type[KvestigateError]) -> Iterator[type[KvestigateError]]:
    for child in cls.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from subclasses(child)


def drawn() -> dict[str, tuple[int | None, int | None]]:
    """The tree in the module's docstring: name -> (HTTP code, exit code), None where not said."""
    line = re.compile(
        r"^    (?:[x+ ]*)(\w+)(?: +(\d{3}))?(?: +exit (\d+))?(?:  .*)?$", re.MULTILINE
    )
    found = line.findall(errors.__doc__ or "")
    return {
        name: (int(code) if code else None, int(exit_) if exit_ else None)
        for name, code, exit_ in found
    }


def test_every_api_error_is_mapped() -> None:
    assert set(API_ERRORS) == set(ApiError.__subclasses__())


def test_reasons_are_unique_and_named_after_the_class() -> None:
    assert [error.reason for error in API_ERRORS] == [error.__name__ for error in API_ERRORS]
    assert len({error.reason for error in API_ERRORS}) == len(API_ERRORS)


def test_the_drawn_tree_names_every_class_and_nothing_else() -> None:
    assert set(drawn()) == {
        KvestigateError.__name__,
        *(c.__name__ for c in subclasses(KvestigateError)),
    }


@pytest.mark.parametrize("error", list(subclasses(KvestigateError)), ids=lambda e: e.__name__)
def test_the_drawn_codes_are_the_real_ones(error: type[KvestigateError]) -> None:
    code, exit_code = drawn()[error.__name__]
    # A code that is not drawn is the parent's.
    assert error.exit_code == (exit_code if exit_code is not None else error.__mro__[1].exit_code)  # type: ignore[attr-defined]  # every base of the tree has one
    if issubclass(error, ApiError) and error is not ApiError:
        assert error.code == code
    else:
        assert code is None


@pytest.mark.parametrize("error", API_ERRORS, ids=lambda e: e.__name__)
def test_a_status_round_trips(error: type[ApiError]) -> None:
    sent = error(
        'pods "web" is wrong', details={"name": "web", "kind": "pods", "retryAfterSeconds": 3}
    )
    status = to_status(sent)
    received = from_status(status, code=status["code"])
    assert type(received) is error
    assert (received.message, received.details, received.http_code) == (
        sent.message,
        sent.details,
        error.code,
    )
    assert received.retry_after == 3.0
    assert to_status(received) == status


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, errors.BadRequest),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Gone),
        (422, errors.Invalid),
        (429, errors.TooManyRequests),
        (500, errors.InternalError),
        (503, errors.ServiceUnavailable),
        (504, errors.Timeout),
        (418, ApiError),
        (502, ApiError),
    ],
)
def test_a_bare_code_decides_when_there_is_no_status(code: int, error: type[ApiError]) -> None:
    received = from_status({}, code=code)
    assert type(received) is error
    assert received.http_code == code
    assert str(code) in received.message


def test_an_unknown_reason_falls_back_to_the_code_and_keeps_the_message() -> None:
    received = from_status({"reason": "TeapotOverflow", "message": "too full"}, code=409)
    assert (type(received), received.message) == (errors.Conflict, "too full")


@pytest.mark.parametrize(
    ("details", "causes", "retry_after"),
    [
        (None, [], None),
        ({"causes": None}, [], None),
        ({"causes": [{"field": "spec"}]}, [{"field": "spec"}], None),
        ({"retryAfterSeconds": 0}, [], None),
        ({"retryAfterSeconds": 7}, [], 7.0),
    ],
)
def test_details_are_read_safely(
    details: dict[str, object] | None, causes: list[object], retry_after: float | None
) -> None:
    error = errors.Invalid("bad", details=details)
    assert list(error.causes) == causes
    assert error.retry_after == retry_after


def test_an_input_error_says_where() -> None:
    assert (
        errors.InputError("not a number", where="a.yaml:3:7").message == "a.yaml:3:7: not a number"
    )
    assert errors.InputError("not a number").message == "not a number"


def test_exit_codes_are_distinct() -> None:
    codes = [value for name, value in vars(errors).items() if name.startswith("EXIT_")]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("node-9", ["node-1", "node-8", "node-10"], ""),
        ("node-1", ["node-01"], "node-01"),
        ("nod-1", ["node-1", "node-2"], "node-1"),
        ("gpu-node-07", ["gpu-node-08"], ""),
        ("wbe", ["web"], "web"),
        ("A10", ["A100"], ""),
    ],
)
def test_another_number_is_never_what_was_meant(name: str, known: list[str], expected: str) -> None:
    assert nearest(name, known) == expected
