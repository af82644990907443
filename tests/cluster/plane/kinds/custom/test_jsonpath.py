"""The paths of columns, replicas and selectable fields."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.plane.kinds.custom import jsonpath

OBJECT = {
    "spec": {"a.b": 1, "list": [{"k": "x", "n": 1}, {"k": "y", "n": 2}], "map": {"p": 3, "q": 4}}
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.list[0].k", ["x"]),
        (".spec.list[-1].k", ["y"]),
        (".spec.list[5].k", []),
        (".spec.list[-1:].k", ["y"]),
        (".spec.list[:1].k", ["x"]),
        (".spec.list[0:2:2].k", ["x"]),
        (".spec.list[1:9].k", []),
        (".spec.map[0:1]", []),
        (".spec.list[*].n", [1, 2]),
        (".spec.map.*", [3, 4]),
        (".spec['a.b']", [1]),
        (r".spec.a\.b", [1]),
        ('.spec.list[?(@.k=="y")].n', [2]),
        (".spec.list[?(@.n>1)].k", ["y"]),
        (".spec.list[?(@.k)].k", ["x", "y"]),
        (".nothing.here", []),
    ],
)
def test_where_a_path_leads(path: str, found: list[Any]) -> None:
    assert jsonpath.find(OBJECT, jsonpath.parse(path)) == found


@given(st.text())
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        steps = jsonpath.parse(text)
    except jsonpath.Unreadable:
        return
    assert isinstance(jsonpath.find(OBJECT, steps), list)
