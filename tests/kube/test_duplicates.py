"""Keys given twice are found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube import duplicates
from kvestigate.kube.duplicates import ONCE, Repeated

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


@given(_JSON, st.sampled_from([None, 1, "\t"]))
def test_a_text_without_any_is_left_alone(value: Any, indent: int | str | None) -> None:
    data = json.dumps(value, indent=indent).encode()
    assert duplicates.checked(data, value) == ONCE


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"a":1,"a":2}', ["a"]),
        ('{"a":1,"a":2,"a":3}', ["a"]),
        ('{"a":{"b":1},"a":{"c":{"d":1,"d":2}}}', ["a", "a.c.d"]),
        ('{"a":[{"b":1,"b":2}]}', ["a[0].b"]),
        ('[{"op":"x","op":"y"}]', ["[0].op"]),
        ('{"a":{"b":1},"a":[2]}', ["a"]),
        ('{"a" : 1, "a" : 2}', ["a"]),
        ('{"a": 1, "a": 2, "b" : 1, "c" : 1}', ["a"]),
        ('{"a": {}, "a": {}}', ["a"]),
    ],
)
def test_keys_given_twice(text: str, paths: list[str]) -> None:
    lines = tuple(f'duplicate field "{path}"' for path in paths)
    assert duplicates.checked(text.encode(), json.loads(text)) == Repeated(lines, lines)


def test_of_very_many_only_the_first_are_told() -> None:
    text = ",".join(f'"a{number % 150}":{number}' for number in range(300))
    repeated = duplicates.checked(f"{{{text}}}".encode(), {})
    assert repeated.warnings == tuple(f'duplicate field "a{number}"' for number in range(100))


def test_unknown_and_repeated_fields_are_told_in_the_order_of_the_text() -> None:
    text = '{"z":1,"b":{"c":1,"c":2},"x":{"d":1,"d":2},"b":{"y":1},"z":2,"e":[{"w":1,"f":1,"f":2}]}'
    assert duplicates.in_order(text, ["x", "z", "b.y", "e[0].w"]) == (
        'unknown field "z"',
        'duplicate field "b.c"',
        'unknown field "x"',
        'duplicate field "b"',
        'unknown field "b.y"',
        'unknown field "e[0].w"',
        'duplicate field "e[0].f"',
    )


def test_lines_of_yaml_make_one_complaint() -> None:
    repeated = duplicates.in_yaml(("line 2: x", "line 5: y"))
    assert repeated.warnings == ("line 2: x", "line 5: y")
    assert repeated.complaints == ("yaml: unmarshal errors:\n  line 2: x\n  line 5: y",)
