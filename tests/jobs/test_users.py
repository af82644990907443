"""Users are told apart by what no label can blur."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import UsageError
from kvestigate.jobs.users import User
from kvestigate.kube.names import label_value_problems


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("user@example.com", "user-example.com"),
        ("user-example.com", "user-example.com"),
        ("a" * 100, "a" * 63),
        ("@@@", "user"),
        ("x,skypilot-task=true", "x-skypilot-task-true"),
    ],
)
def test_the_label_is_readable(name: str, label: str) -> None:
    assert User(name).label == label


@given(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=80))
def test_different_names_are_different_owners(one: str, other: str) -> None:
    try:
        first, second = User(one), User(other)
    except UsageError:
        return
    assert label_value_problems(first.label) == []
    assert label_value_problems(first.digest) == []
    assert (first.digest == second.digest) is (one == other)


@pytest.mark.parametrize("name", ["", " ", " a", "a\n", "a\0b", "x" * 254])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        User(name)
