"""Documents become dataclasses, or are told all that is wrong with them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.kube.documents import (
    ANYTHING,
    Mistakes,
    Problem,
    line_of,
    one_document,
    read,
    text,
    written,
)


class Colour(enum.StrEnum):
    RED = "red"
    DARK_BLUE = "dark-blue"


@dataclass(frozen=True, slots=True)
class Wheel:
    SHORTHAND: ClassVar[str] = "size"
    size: int
    spokes: int = 0

    def __post_init__(self) -> None:
        if self.spokes == 13:
            raise InputError("13 do not hold", where="wheel.spokes", hint="write 12 or 14")
        if self.spokes > self.size:
            raise InputError("has more spokes than it is large")


@dataclass(frozen=True, slots=True)
class Bike:
    name: str
    colour: Colour = Colour.RED
    wheels: tuple[Wheel, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    weight: float = 1.0
    fast: bool = False
    owner: str | None = None
    front: Wheel = field(default_factory=lambda: Wheel(28))


def test_everything_at_once() -> None:
    document = {
        "name": "b",
        "colour": "dark-blue",
        "wheels": [{"size": 28, "spokes": 24}, 26],
        "labels": {"a": "b", "n": 4},
        "weight": 9,
        "fast": True,
        "owner": None,
        "front": None,
    }
    assert read(Bike, document) == Bike(
        "b",
        Colour.DARK_BLUE,
        (Wheel(28, 24), Wheel(26)),
        {"a": "b", "n": "4"},
        9.0,
        True,
    )


@pytest.mark.parametrize(
    ("document", "path", "message", "hint"),
    [
        ({}, "bike.name", "the field is required", ""),
        ({"name": None}, "bike.name", "the field is required", ""),
        ({"nmae": "b", "name": "b"}, "bike.nmae", "no such field", "did you mean bike.name?"),
        ({"name": True}, "bike.name", "True is not text", 'write "true", in quotes'),
        ({"name": ["b"]}, "bike.name", "['b'] is not text", ""),
        (
            {"name": "b", "colour": "Red"},
            "bike.colour",
            "'Red' is none of red, dark-blue",
            "did you mean red?",
        ),
        (
            {"name": "b", "colour": 7},
            "bike.colour",
            "7 is none of red, dark-blue",
            "there are: dark-blue, red",
        ),
        (
            {"name": "b", "wheels": 28},
            "bike.wheels",
            "28 is not a list",
            "write [a, b], or - a",
        ),
        (
            {"name": "b", "wheels": [{"size": "big"}]},
            "bike.wheels[0].size",
            "'big' is not a whole number",
            "",
        ),
        (
            {"name": "b", "wheels": [{"size": True}]},
            "bike.wheels[0].size",
            "True is not a whole number",
            "",
        ),
        (
            {"name": "b", "wheels": [{"size": 28, "spokes": 13}]},
            "bike.wheels[0].spokes",
            "13 do not hold",
            "write 12 or 14",
        ),
        (
            {"name": "b", "wheels": [{"size": 28, "spokes": 99}]},
            "bike.wheels[0]",
            "has more spokes than it is large",
            "",
        ),
        ({"name": "b", "labels": []}, "bike.labels", "[] is not a mapping", "write {name: value}"),
        ({"name": "b", "labels": {"a": []}}, "bike.labels.a", "[] is not text", ""),
        ({"name": "b", "fast": 1}, "bike.fast", "1 is not true or false", ""),
        (
            {"name": "b", "front": [28]},
            "bike.front",
            "[28] is not a mapping",
            "its fields are size, spokes",
        ),
    ],
)
def test_a_mistake_is_told_with_its_path_and_value(
    document: Any, path: str, message: str, hint: str
) -> None:
    with pytest.raises(Mistakes) as caught:
        read(Bike, document, "bike")
    assert caught.value.problems == (Problem(path, message, hint),)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(Mistakes) as caught:
        read(Bike, {"colour": "green", "wheels": [{"spokes": "x"}], "bell": 1})
    assert [it.path for it in caught.value.problems] == [
        "bell",
        "colour",
        "wheels[0].spokes",
        "wheels[0].size",
        "name",
    ]


def halved(value: Any, path: str) -> int:
    if not isinstance(value, int) or value % 2:
        raise InputError(f"{value!r} is not even", where=path, hint="write 2")
    return value // 2


def twice(value: Any, path: str) -> int:
    return 2 * read(Pair, value, path).half


@dataclass(frozen=True, slots=True)
class Pair:
    IGNORED: ClassVar[tuple[str, ...]] = ("note",)
    half: Annotated[int, halved] = 0
    names: frozenset[Annotated[str, text]] = frozenset()
    inner: Annotated[int, twice] = 0


@dataclass(frozen=True, slots=True)
class Loose:
    IGNORED: ClassVar[Any] = ANYTHING
    pair: Pair = field(default_factory=Pair)


def test_a_field_is_what_its_function_makes_of_it() -> None:
    document = {"half": 4, "names": ["a", "b", "a"], "inner": {"half": 6}, "note": object()}
    assert read(Pair, document) == Pair(2, frozenset(("a", "b")), 6)
    assert read(Loose, {"anything": 1, "pair": None}) == Loose()
    assert read(Loose, None) == Loose()


def test_the_mistakes_of_a_function_are_those_of_its_field() -> None:
    document = {"half": 3, "names": ["", 1], "inner": {"half": 5, "nmaes": []}, "halv": 1}
    with pytest.raises(Mistakes) as caught:
        read(Pair, document, "pair")
    assert [(it.path, it.hint) for it in caught.value.problems] == [
        ("pair.halv", "did you mean pair.half?"),
        ("pair.half", "write 2"),
        ("pair.names[0]", ""),
        ("pair.names[1]", ""),
        ("pair.inner.nmaes", "did you mean pair.inner.names?"),
        ("pair.inner.half", "write 2"),
    ]


FILE = b"# pairs\nhalf: 3\nnames:\n- a\n- ''\ninner:\n  nmaes: []\n"


def test_mistakes_in_a_file_are_told_with_their_lines() -> None:
    file = one_document(FILE, "pair.yaml", "pair")
    with pytest.raises(InputError) as caught, file.mistakes():
        read(Pair, file.value)
    assert str(caught.value) == (
        "pair.yaml: 3 mistakes\n"
        "pair.yaml:2: half: 3 is not even; write 2\n"
        "pair.yaml:5: names[1]: '' is not text\n"
        "pair.yaml:7: inner.nmaes: no such field; did you mean inner.names?"
    )


def test_a_single_mistake_is_one_line_with_its_hint() -> None:
    file = one_document(b"names: []\n\nhalf: 5\n", "-", "pair")
    with pytest.raises(InputError) as caught, file.mistakes():
        read(Pair, file.value)
    assert (str(caught.value), caught.value.hint) == ("-:3: half: 5 is not even", "write 2")


@pytest.mark.parametrize(
    ("path", "line"), [("", 2), ("half", 2), ("names", 3), ("names[1]", 5), ("inner.x.y", 6)]
)
def test_the_line_of_a_field_or_of_what_is_around_it(path: str, line: int) -> None:
    assert line_of(FILE, path) == line


@pytest.mark.parametrize(("data", "count"), [(b"", 0), (b"{}\n---\n{}", 2)])
def test_a_file_with_another_number_of_documents_is_refused(data: bytes, count: int) -> None:
    with pytest.raises(InputError, match=f"f: holds {count} documents, not one pair"):
        one_document(data, "f", "pair")


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match='f:2:1: the key "half" is given twice'):
        one_document(b"half: 2\nhalf: 4\n", "f", "pair")


WHEELS = st.builds(Wheel, st.integers(min_value=0), st.integers(max_value=0))
BIKES = st.builds(
    Bike,
    st.text(),
    st.sampled_from(Colour),
    st.lists(WHEELS).map(tuple),
    st.dictionaries(st.text(), st.text()),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none() | st.text(),
    WHEELS,
)


@given(BIKES)
def test_what_is_written_is_read_again(bike: Bike) -> None:
    assert read(Bike, written(bike)) == bike


def test_defaults_are_not_written() -> None:
    assert written(Bike("b", Colour.DARK_BLUE, (Wheel(28),))) == {
        "name": "b",
        "colour": "dark-blue",
        "wheels": [{"size": 28}],
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abname"), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["name", "colour", "wheels", "labels", "front"]), JSON))
def test_any_document_is_read_or_refused(document: dict[str, Any]) -> None:
    try:
        bike = read(Bike, document)
    except Mistakes:
        return
    assert isinstance(bike.name, str)
