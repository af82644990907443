"""Expressions of any text are refused or run, and what they compute is right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube import cel
from kvestigate.kube.cel import types

_SMALL = st.integers(-(2**31), 2**31)
_PIECES = [
    *("self", "x", "1", "2.5", "'a'", "true", "null", "has(self.a)", "size", "[", "]", "{", "}"),
    *("(", ")", ".", ",", ":", "?", "+", "-", "*", "/", "%", "==", "<", "&&", "||", "!", "in"),
    *("all", "map", "filter", "exists", "matches", "duration", "b'x'", "1u", " ", "\n", '"'),
]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join) | st.text(max_size=20))
def test_any_text_is_refused_or_runs(source: str) -> None:
    try:
        program = cel.compiled(source, {"self": types.DYN})
        program.run({"a": [1, "b"], "x": {}}, budget=100)
    except (cel.CompileError, cel.EvalError, cel.OutOfBudget):
        pass


@given(_SMALL, _SMALL)
def test_arithmetic(left: int, right: int) -> None:
    names = {"a": types.INT, "b": types.INT}
    assert cel.compiled("a + b", names).run(left, right) == left + right
    assert cel.compiled("a * b", names).run(left, right) == left * right
    assert cel.compiled("(a < b) == (b > a)", names).run(left, right) is True
    if right:
        whole = cel.compiled("a / b * b + a % b == a", names)
        assert whole.run(left, right) is True


@given(st.lists(st.integers(-9, 9), max_size=8))
def test_loops(values: list[int]) -> None:
    names = {"v": types.list_of(types.INT)}

    def run(source: str) -> Any:
        return cel.compiled(source, names).run(values)

    assert run("v.all(x, x > 0)") == all(x > 0 for x in values)
    assert run("v.exists(x, x > 0)") == any(x > 0 for x in values)
    assert run("v.filter(x, x > 0)") == [x for x in values if x > 0]
    assert run("v.map(x, x * 2)") == [x * 2 for x in values]
    assert run("v.map(x, x > 0, x * 2)") == [x * 2 for x in values if x > 0]
    assert run("v.exists_one(x, x == 1)") == (values.count(1) == 1)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("self.nope == 1 || true", True),
        ("true || self.nope == 1", True),
        ("self.nope == 1 && false", False),
        ("[1, 2].exists(x, x == 2 || self.nope == x)", True),
        ("true ? 1 : self.nope", 1),
    ],
)
def test_what_decides_makes_up_for_what_fails(source: str, value: Any) -> None:
    assert cel.compiled(source, {"self": types.DYN}).run({}) == value


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("self.nope", "no such key: nope"),
        ("self.list[3]", "index out of bounds: 3"),
        ("self.map['x']", "no such key: x"),
        ("1 / self.zero", "division by zero"),
        ("1 % self.zero", "modulus by zero"),
        ("9223372036854775807 + self.one", "integer overflow"),
        ("self.zero + 'a'", "no such overload"),
        ("self.zero && true", "no such overload"),
        ("optional.none().value()", "optional.none() dereference"),
    ],
)
def test_what_has_no_value(source: str, why: str) -> None:
    program = cel.compiled(source, {"self": types.DYN})
    with pytest.raises(cel.EvalError, match=why.replace("(", r"\(").replace(")", r"\)")):
        program.run({"zero": 0, "one": 1, "list": [1], "map": {}})


def test_no_expression_runs_for_ever() -> None:
    many = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d > -1))))"
    program = cel.compiled(many, {"self": types.list_of(types.INT)})
    with pytest.raises(cel.OutOfBudget):
        program.run(list(range(100)), budget=10_000)
