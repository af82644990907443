"""YAML that is written in portions."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kvestigate.kube.yaml_documents import load
from kvestigate.render.yaml_text import portions, written


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": [[1, 2], {"b": 1, "c": [3]}]}, "a:\n- - 1\n  - 2\n- b: 1\n  c:\n  - 3\n"),
        ({"": {"a": 1, "b": 2}}, "? ''\n: a: 1\n  b: 2\n"),
        ({"a\nb": [1]}, "? |-\n  a\n  b\n: - 1\n"),
        ({"a": ["one\n\n two"]}, "a:\n- |-\n  one\n\n   two\n"),
        ({"a": " x\n"}, "a: |2\n   x\n"),
        ({"a": "x\n\n"}, "a: |+\n  x\n\n"),
        ({"a": "trailing \nspace"}, 'a: "trailing \\nspace"\n'),
        ({"a": "tab\there"}, 'a: "tab\\there"\n'),
        ({"a": "it's: so"}, "a: 'it''s: so'\n"),
        (
            {"a": "image:1", "b": "- x", "c": "--x", "d": "a #b"},
            "a: image:1\nb: '- x'\nc: --x\nd: 'a #b'\n",
        ),
        (
            {"a": "2026-11-16", "b": "1:30", "c": "2026-x"},
            "a: '2026-11-16'\nb: '1:30'\nc: 2026-x\n",
        ),
        ({"a": 1e300, "b": 0.5, "c": float("-inf")}, "a: 1.0e+300\nb: 0.5\nc: -.inf\n"),
        ([], "[]\n"),
        ("word", "word\n"),
    ],
)
def test_it_is_written_as_kubectl_does(value: Any, shown: str) -> None:
    assert written(value) == shown


@pytest.mark.parametrize(
    "value",
    [
        {"data": {f"key-{number}": f"line\n{number}" for number in range(1000)}, "after": 1},
        {"items": [{"name": f"n-{number}", "list": [number]} for number in range(50)], "after": []},
        [{"a": number} for number in range(50)],
        {"? ": {str(number): number for number in range(1000)}},
    ],
    ids=["mapping", "list", "list alone", "odd key"],
)
def test_what_is_long_comes_in_portions(value: Any) -> None:
    found = list(portions(value))

    text = "".join(found)
    assert yaml.safe_load(text) == value
    assert [document.value for document in load(text)] == [value]
    assert len(found) > 5
    assert max(map(len, found)) < len(text) / 5


@pytest.mark.parametrize("key", ["k" * 119, "k" * 120, "k" * 500, "a: b", "#", "on", "\u2028"])
def test_any_text_is_a_key(key: str) -> None:
    assert yaml.safe_load(written({"all": {key: {key: 1}}})) == {"all": {key: {key: 1}}}
