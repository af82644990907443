"""Label selectors: the grammar, the matching and the canonical form of an API server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.kube import selectors
from kvestigate.kube.selectors import Operator, Requirement, parse_labels


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (" \t\n", ""),
        ("a=b", "a=b"),
        ("a==b", "a==b"),
        ("a = b , c != d", "a=b,c!=d"),
        ("b=1,a=2", "a=2,b=1"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("x in (c,a,b)", "x in (a,b,c)"),
        ("x in (a,a)", "x in (a)"),
        ("x in ()", "x in ()"),
        ("x in (,a)", "x in (,a)"),
        ("x notin (a,)", "x notin (,a)"),
        ("x in(a)", "x in (a)"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("g,!h", "g,!h"),
        ("! h", "!h"),
        ("a>1,b< 22", "a>1,b<22"),
        ("example.com/a-b=c_d", "example.com/a-b=c_d"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    selector = parse_labels(text)
    assert str(selector) == canonical
    assert parse_labels(canonical) == selector


@pytest.mark.parametrize(
    ("text", "problem", "character"),
    [
        ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt", 3),
        ("a=b c", "found 'c', expected: ',' or 'end of string'", 5),
        ("a=b,", "found '', expected: identifier after ','", 5),
        (",a", "found ',', expected: !, identifier, or 'end of string'", 1),
        ("!", "found '', expected: identifier", 2),
        ("!a=b", "found '=', expected: ',' or 'end of string'", 3),
        ("a===b", "found '=', expected: identifier", 4),
        ("a in b", "found 'b', expected: '('", 6),
        ("a in (b", "found '', expected: ',' or ')'", 8),
        ("a in (b c)", "found 'c', expected: ',' or ')'", 9),
        ("a in (", "found '', expected: ',', ')' or identifier", 7),
        ("a in (=)", "found '=', expected: ',', ')' or identifier", 7),
        ("a in (b,", "found '', expected: ',', or identifier", 9),
        ("a in (b))", "found ')', expected: ',' or 'end of string'", 9),
        ("x=1,-a=b", "label key '-a': name part must consist of", 5),
        ("x=1,a=-b", "value '-b' of label 'a': a valid label must be", 5),
        ("a>x", "for 'Gt', 'Lt' operators, the value must be an integer, got ['x']", 1),
        ("a>9223372036854775808", "for 'Gt', 'Lt' operators, the value must be an integer", 1),
    ],
)
def test_a_mistake_is_named_with_its_position(text: str, problem: str, character: int) -> None:
    with pytest.raises(InputError) as refusal:
        parse_labels(text)
    assert problem in refusal.value.message
    assert refusal.value.where == f"label selector {text!r}, character {character}"
    assert "app=web" in (refusal.value.hint or "")


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("a=b", {"a": "b", "c": "d"}, True),
        ("a=b", {"a": "x"}, False),
        ("a=b", {}, False),
        ("a=", {}, False),
        ("a=", {"a": ""}, True),
        ("a=b,c=d", {"a": "b", "c": "d", "e": "f"}, True),
        ("a=b,c=d", {"a": "b"}, False),
        ("a=b,a=c", {"a": "b"}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a in (b,c)", {"a": "c"}, True),
        ("a in (b,c)", {"a": "d"}, False),
        ("a in (b,c)", {}, False),
        ("a notin (b,c)", {}, True),
        ("a notin (b,c)", {"a": "b"}, False),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("!a", {"a": ""}, False),
        ("a>1", {"a": "2"}, True),
        ("a>1", {"a": "1"}, False),
        ("a>1", {"a": "10"}, True),
        ("a>1", {"a": "x"}, False),
        ("a>1", {"a": "1_0"}, False),
        ("a>1", {}, False),
        ("a<1", {"a": "-5"}, True),
        ("a<1", {"a": "-99999999999999999999"}, False),
        ("a=b,c!=d,!e", {"a": "b"}, True),
        ("a=b,c!=d,!e", {"a": "b", "e": ""}, False),
    ],
)
def test_matching(text: str, labels: dict[str, str], matches: bool) -> None:
    assert parse_labels(text).matches(labels) is matches


@pytest.mark.parametrize(
    ("selector", "canonical"),
    [
        ({}, ""),
        ({"matchLabels": None, "matchExpressions": None}, ""),
        ({"matchLabels": {"b": "1", "a": "2"}}, "a=2,b=1"),
        (
            {
                "matchLabels": {"c": "x"},
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["z", "y"]},
                    {"key": "b", "operator": "NotIn", "values": ["y"]},
                    {"key": "d", "operator": "Exists"},
                    {"key": "e", "operator": "DoesNotExist", "values": []},
                ],
            },
            "a in (y,z),b notin (y),c=x,d,!e",
        ),
    ],
)
def test_selectors_of_objects(selector: dict[str, Any], canonical: str) -> None:
    assert str(selectors.from_label_selector(selector)) == canonical


def test_an_absent_selector_selects_nothing_and_an_empty_one_everything() -> None:
    absent, empty = selectors.from_label_selector(None), selectors.from_label_selector({})
    assert not absent.matches({})
    assert not absent.selects_everything
    assert empty.matches({})
    assert empty.selects_everything


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ({"key": "a", "operator": "Gt", "values": ["1"]}, '"Gt" is not a valid label selector'),
        ({"key": "a"}, '"" is not a valid label selector operator'),
        ({"key": "a", "operator": "In"}, "values set can't be empty"),
        ({"key": "a", "operator": "Exists", "values": ["x"]}, "values set must be empty"),
        ({"key": "", "operator": "Exists"}, "name part must be non-empty"),
        ({"key": "a", "operator": "In", "values": ["é"]}, "value 'é' of label 'a'"),
    ],
)
def test_bad_expressions_are_refused_by_their_path(
    expression: dict[str, Any], problem: str
) -> None:
    good = {"key": "a", "operator": "Exists"}
    with pytest.raises(InputError) as refusal:
        selectors.from_label_selector({"matchExpressions": [good, expression]})
    assert problem in refusal.value.message
    assert refusal.value.where == "matchExpressions[1]"


@pytest.mark.parametrize(
    ("labels", "matches"), [({"cpus": "64"}, True), ({"cpus": "8"}, False), ({}, False)]
)
def test_node_selector_terms_can_compare(labels: dict[str, str], matches: bool) -> None:
    terms = [
        {"key": "cpus", "operator": "Gt", "values": ["16"]},
        {"key": "cpus", "operator": "Lt", "values": ["128"]},
    ]
    assert selectors.from_node_expressions(terms).matches(labels) is matches


@pytest.mark.parametrize("values", [[], ["1", "2"]])
def test_a_comparison_takes_one_value(values: list[str]) -> None:
    with pytest.raises(InputError, match="exactly one value is required"):
        selectors.from_node_expressions([{"key": "cpus", "operator": "Gt", "values": values}])


keys = st.text("ab", min_size=1, max_size=1) | st.sampled_from(["in", "x.y/z"])
values = st.sampled_from(["", "x", "y", "in", "3", "70"])
requirements = (
    st.builds(Requirement, keys, st.sampled_from([Operator.EXISTS, Operator.NOT_EXISTS]))
    | st.builds(
        Requirement,
        keys,
        st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS]),
        st.tuples(values),
    )
    | st.builds(
        Requirement,
        keys,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.sets(values, min_size=1).map(sorted).map(tuple),
    )
    | st.builds(
        Requirement,
        keys,
        st.sampled_from([Operator.GREATER, Operator.LESS]),
        st.sampled_from([("3",), ("70",)]),
    )
)
label_maps = st.dictionaries(keys, values)


@given(st.lists(requirements, max_size=4).map(tuple), label_maps)
def test_every_selector_survives_its_text(
    wanted: tuple[Requirement, ...], labels: dict[str, str]
) -> None:
    selector = selectors.LabelSelector(wanted)
    again = parse_labels(str(selector))
    assert again == selector
    assert again.matches(labels) == all(
        selectors.LabelSelector((one,)).matches(labels) for one in wanted
    )


@given(st.text(max_size=30) | st.text("ab=!(),<>in ", max_size=20))
def test_garbage_is_refused_and_never_breaks(text: str) -> None:
    try:
        selector = parse_labels(text)
    except InputError:
        return
    assert parse_labels(str(selector)) == selector
