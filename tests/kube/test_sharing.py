from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube.sharing import Pool
from kvestigate.kube.views.meta import View


class Part(View, frozen=True):
    word: str = ""
    number: int | bool | str = 0
    labels: dict[str, Any] = msgspec.field(default_factory=dict)


class Plain(View, frozen=True):
    """Without a dict: it can be looked up as a whole."""

    word: str = ""
    number: int | str = 0
    words: tuple[str, ...] = ()


class Whole(View, frozen=True):
    name: str = ""
    word: str = ""
    at: datetime | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    one: Part | None = None
    many: tuple[Part, ...] = ()
    plain: tuple[Plain, ...] = ()
    words: tuple[str, ...] = ()
    numbers: tuple[int | bool, ...] = ()


VALUE = {
    "name": "a",
    "word": "Running",
    "at": "2026-01-02T03:04:05Z",
    "labels": {"app": "web"},
    "one": {"word": "x"},
    "many": [{"word": "x"}, {"word": "y"}],
    "plain": [{"word": "z", "number": 80}],
    "words": ["serve", "--all"],
}


def decoded(value: object) -> Whole:
    return msgspec.json.decode(msgspec.json.encode(value), type=Whole)


@pytest.mark.parametrize("part", ["word", "at", "labels", "plain", "words"])
def test_equal_parts_become_one(part: str) -> None:
    pool, views = Pool(), [decoded(VALUE), decoded(VALUE | {"name": "b"})]
    for view in views:
        pool.share(view)
    assert getattr(views[0], part) is getattr(views[1], part)
    assert [view.name for view in views] == ["a", "b"]


def test_parts_of_parts_become_one() -> None:
    pool = Pool()
    first, second = decoded(VALUE), decoded(VALUE)
    pool.share(first)
    pool.share(second)
    assert first.many[0].word is second.many[0].word


scalars = st.one_of(st.booleans(), st.integers(0, 2), st.text("ab1", max_size=2))
parts = st.fixed_dictionaries(
    {"word": st.text("ab", max_size=2), "number": scalars},
    optional={"labels": st.dictionaries(st.text("ab", max_size=1), scalars, max_size=2)},
)
plain = st.fixed_dictionaries(
    {
        "word": st.text("ab", max_size=2),
        "number": st.integers(0, 2) | st.text("01", max_size=1),
        "words": st.lists(st.text("ab", max_size=2), max_size=2),
    }
)
wholes = st.fixed_dictionaries(
    {
        "name": st.text("ab", max_size=2),
        "one": st.none() | parts,
        "many": st.lists(parts, max_size=3),
        "plain": st.lists(plain, max_size=3),
        "numbers": st.lists(st.booleans() | st.integers(0, 2), max_size=3),
        "words": st.lists(st.text("ab", max_size=2), max_size=3),
    }
)


@given(st.lists(wholes, max_size=6))
def test_no_view_says_anything_else_afterwards(values: list[dict[str, Any]]) -> None:
    pool, views = Pool(), [decoded(value) for value in values]
    before = [msgspec.json.encode(view) for view in views]
    for view in views:
        pool.share(view)
    assert [msgspec.json.encode(view) for view in views] == before
