"""JSON merge patch: the RFC's table, the server's reading of nulls, and diff as its inverse."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import BadRequest
from kvestigate.kube.patches import merge
from kvestigate.kube.patches.values import same


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        # RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        # where the RFC is silent
        ({}, {"a": [{"b": None, "c": [None]}]}, {"a": [{"c": [None]}]}),
        ({"a": [1]}, {"a": [{"b": None}]}, {"a": [{}]}),
        ({"a": {}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ({"a": None}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": 1}, {"a": True}, {"a": True}),
    ],
)
def test_apply(document: Any, patch: Any, result: Any) -> None:
    before = json.dumps([document, patch])
    assert same(merge.apply(document, patch), result)
    assert json.dumps([document, patch]) == before


def test_an_api_server_takes_objects_only() -> None:
    merge.require_object({})
    with pytest.raises(BadRequest) as refusal:
        merge.require_object([])
    assert refusal.value.message == (
        "error decoding patch: json: cannot unmarshal array into Go value of type "
        "map[string]interface {}"
    )


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": {}}, {"a": {}}, {}),
        ({}, {"a": {}}, {"a": {}}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": [0]}, {"a": [False]}, {"a": [False]}),
        ([1], {"a": 1}, {"a": 1}),
    ],
)
def test_diff(old: Any, new: Any, patch: Any) -> None:
    assert same(merge.diff(old, new), patch)


scalars = st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "y"]) | st.floats(0, 1)


def objects(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from("abcd")
    values = st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner)
    )
    return st.dictionaries(names, values)


@given(objects(scalars), objects(scalars))
def test_applying_a_diff_gives_the_new_document(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge.diff(old, new)
    assert same(merge.apply(old, patch), new)
    assert same(merge.apply(new, patch), new)
    assert merge.diff(new, new) == {}


@given(objects(scalars | st.none()), objects(scalars | st.none()))
def test_a_patch_changes_no_input(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before = json.dumps([document, patch])
    merge.apply(document, patch)
    merge.diff(document, patch)
    assert json.dumps([document, patch]) == before


def test_what_a_patch_does_not_touch_is_shared() -> None:
    document = {"spec": {"containers": [1]}, "status": {"phase": "Running"}}
    patched = merge.apply(document, {"status": {"phase": "Failed"}})
    assert patched["spec"] is document["spec"]
