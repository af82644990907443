"""What expressions may cost at most; the figures are those by which kube-apiserver 1.36 refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube.cel import schema
from kvestigate.kube.cel.extents import REQUEST, extent_of
from kvestigate.kube.cel.program import estimated
from kvestigate.kube.cel.sizes import MOST

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "expressions.json").read_text())
NAME = {"type": "string", "maxLength": 20}


def cost(rule: str, of: dict[str, Any]) -> int:
    type_, extent = schema.type_of(of), extent_of(of)
    assert type_ is not None
    assert extent is not None
    return estimated(rule, {"self": type_}, extent)


def names(most: int) -> dict[str, Any]:
    return {"type": "array", "items": NAME, "maxItems": most}


@pytest.mark.parametrize(
    ("rule", "each"),
    [
        ("x == 'abc'", 5),
        ("size(x) > 1", 6),
        ("x.startsWith('abcdefghijk')", 6),
        ("x.contains('abcdefghijk')", 20),
        ("x.matches('^[a-z]+$')", 22),
        ("x + 'a' == 'b'", 14),
        ("x in ['a', 'b']", 16),
        ("true ? x == 'a' : false", 5),
        ("x.split(',').size() > 1", 22),
    ],
)
def test_each_round_of_a_loop_is_paid_for(rule: str, each: int) -> None:
    whole = f"self.all(x, {rule})"
    assert cost(whole, names(1001)) - cost(whole, names(1)) == 1000 * each


@pytest.mark.parametrize(
    ("of", "most"),
    [
        (NAME, 80),
        ({"type": "string"}, REQUEST - 2),
        ({"type": "string", "enum": ["a", "abc"]}, 3),
        ({"type": "string", "format": "date-time"}, 32),
        ({"type": "string", "format": "byte", "maxLength": 9}, 9),
        ({"type": "array", "items": {"type": "integer"}}, (REQUEST - 2) // 2),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, (REQUEST - 2) // 10),
        ({"type": "integer"}, 0),
        ({"x-kubernetes-int-or-string": True}, REQUEST - 2),
    ],
)
def test_a_schema_limits_how_much_there_can_be(of: dict[str, Any], most: int) -> None:
    found = extent_of(of)
    assert found is not None
    assert found.most == most


def test_required_fields_make_objects_longer_and_fewer() -> None:
    small = extent_of({"type": "object", "properties": {"name": NAME}})
    large = extent_of({"type": "object", "properties": {"name": NAME}, "required": ["name"]})
    assert small is not None
    assert large is not None
    assert (small.repeats, large.repeats) == (REQUEST // 3, REQUEST // 13)


@pytest.mark.parametrize("rule", RECORDED["values"])
def test_every_expression_has_a_cost(rule: str) -> None:
    assert 0 <= cost(rule, RECORDED["schema"]) <= MOST


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_more_elements_cost_more(one: int, other: int) -> None:
    rule = "self.all(x, self.exists(y, x != y && x.matches('a')))"
    fewer, more = sorted((one, other))
    assert cost(rule, names(fewer)) <= cost(rule, names(more))
