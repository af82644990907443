"""Strategic merge patch: keyed lists, directives, merged order, and kube-apiserver's errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import ApiError, BadRequest, Invalid
from kvestigate.kube.patches import merge, strategic
from kvestigate.kube.patches.strategic import UNTYPED, PatchField, PatchSchema
from kvestigate.kube.patches.values import same


@dataclass(frozen=True)
class Fields:
    """A schema written by hand."""

    known: Mapping[str, PatchField] = field(default_factory=dict)

    def field(self, name: str) -> PatchField:
        return self.known.get(name, PatchField())


CONTAINER = Fields(
    {
        "env": PatchField(("merge",), "name"),
        "ports": PatchField(("merge",), "containerPort"),
    }
)
POD: PatchSchema = Fields(
    {
        "metadata": PatchField(
            schema=Fields({"finalizers": PatchField(("merge",)), "flags": PatchField(("merge",))})
        ),
        "spec": PatchField(
            schema=Fields(
                {
                    "containers": PatchField(("merge",), "name", CONTAINER),
                    "volumes": PatchField(("merge", "retainKeys"), "name"),
                    "strategy": PatchField(("retainKeys",)),
                    "whole": PatchField(("replace",)),
                    "keyless": PatchField(("merge",)),
                }
            )
        ),
    }
)


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def containers(*names: str) -> dict[str, Any]:
    return {"spec": {"containers": named(*names)}}


def finalizers(*names: str) -> dict[str, Any]:
    return {"metadata": {"finalizers": list(names)}}


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        # maps
        ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
        ({"a": 1, "b": 2}, {"a": None, "c": None}, {"b": 2}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}),
        ({"a": 1}, {"$patch": "replace", "b": 2}, {"b": 2}),
        ({}, {"a": {"b": None, "c": [{"d": None}]}}, {"a": {"c": [{}]}}),
        ({}, {"a": {"$patch": "delete"}}, {}),
        ({"a": 1}, {"a": {"$patch": "delete"}}, {}),
        ({"a": 1}, {"a": {"b": {"$patch": "delete"}, "c": 1}}, {"a": {"c": 1}}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        (
            {"spec": {"whole": {"a": 1}}},
            {"spec": {"whole": {"b": 2}}},
            {"spec": {"whole": {"b": 2}}},
        ),
        # lists without a strategy
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": [1, 2]}, {"a": []}, {"a": []}),
        # keyed lists
        (
            {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}},
            {"spec": {"containers": [{"name": "b", "image": "3"}]}},
            {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "3"}]}},
        ),
        (containers("a", "b"), containers("c"), containers("c", "a", "b")),
        (containers("a", "b"), containers("b", "c"), containers("a", "b", "c")),
        (containers("a", "b"), containers("b", "a"), containers("b", "a")),
        (containers(), containers(), containers()),
        (containers(), containers("a"), containers("a")),
        ({"spec": {}}, containers("a"), containers("a")),
        (
            containers("a", "b"),
            {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}},
            containers("b"),
        ),
        (
            containers("a", "b"),
            {"spec": {"containers": [{"name": "x", "$patch": "delete"}, {"name": "c"}]}},
            containers("c", "a", "b"),
        ),
        (
            containers("a", "b"),
            {"spec": {"containers": [{"$patch": "replace"}, {"name": "c"}]}},
            containers("c"),
        ),
        (
            {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]}},
            {"spec": {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]}},
            {
                "spec": {
                    "containers": [
                        {
                            "name": "a",
                            "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}],
                        }
                    ]
                }
            },
        ),
        (
            {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]}},
            {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1, "name": "x"}]}]}},
            {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1, "name": "x"}]}]}},
        ),
        # lists of scalars
        (finalizers("a", "b"), finalizers("c"), finalizers("c", "a", "b")),
        (finalizers("a", "b"), finalizers("b"), finalizers("a", "b")),
        (finalizers("a", "b"), finalizers("b", "a"), finalizers("b", "a")),
        (finalizers("a", "a", "b"), finalizers("c"), finalizers("c", "a", "b")),
        (
            finalizers("a", "b", "c"),
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "c", "x"]}},
            finalizers("b"),
        ),
        (
            finalizers("a", "b"),
            {
                "metadata": {
                    "$setElementOrder/finalizers": ["c", "b"],
                    "$deleteFromPrimitiveList/finalizers": ["a"],
                    "finalizers": ["c"],
                }
            },
            finalizers("c", "b"),
        ),
        (
            {"metadata": {}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {}},
        ),
        (
            finalizers("a", "b"),
            {"metadata": {"$deleteFromPrimitiveList/finalizers": None}},
            {"metadata": {}},
        ),
        (
            finalizers("a", "b"),
            {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
            finalizers("a", "b"),
        ),
        # $setElementOrder
        (
            containers("a", "b"),
            {
                "spec": {
                    "$setElementOrder/containers": named("c", "d"),
                    "containers": [{"$patch": "replace"}, *named("c", "d")],
                }
            },
            containers("c", "d"),
        ),
        (
            containers("a", "b", "c"),
            {"spec": {"$setElementOrder/containers": named("c", "a")}},
            containers("b", "c", "a"),
        ),
        (
            containers("a", "b"),
            {
                "spec": {
                    "$setElementOrder/containers": named("b", "c", "a"),
                    "containers": named("c"),
                }
            },
            containers("b", "c", "a"),
        ),
        (
            {"spec": {}},
            {
                "spec": {
                    "$setElementOrder/containers": named("b", "a"),
                    "containers": named("b", "a"),
                }
            },
            containers("b", "a"),
        ),
        (
            containers("a", "b"),
            {
                "spec": {
                    "$setElementOrder/containers": named("b"),
                    "containers": [{"name": "a", "$patch": "delete"}],
                }
            },
            containers("b"),
        ),
        ({"spec": {}}, {"spec": {"$setElementOrder/containers": named("a")}}, {"spec": {}}),
        # $retainKeys
        (
            {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
        ),
        (
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
            {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {}}]}},
            {"spec": {"volumes": [{"name": "v", "secret": {}}]}},
        ),
    ],
)
def test_apply(original: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    before = json.dumps([original, patch])
    assert same(strategic.apply(original, patch, POD), result)
    assert json.dumps([original, patch]) == before


REJECTED = "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("original", "patch", "error", "message"),
    [
        (
            containers("a"),
            {"spec": {"containers": [{"image": "x", "args": [1, None, True]}]}},
            ApiError,
            "map: map[args:[1 <nil> true] image:x] does not contain declared merge key: name",
        ),
        (
            {"spec": {"containers": [{}]}},
            containers("a"),
            ApiError,
            "map: map[] does not contain declared merge key: name",
        ),
        (
            containers("a"),
            {"spec": {"containers": [{"$patch": "delete"}]}},
            ApiError,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            containers("a"),
            {"spec": {"containers": [{"name": "a", "$patch": "merge"}]}},
            ApiError,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            containers("a"),
            {"spec": {"containers": [{"name": "a", "$patch": "x"}]}},
            ApiError,
            "unknown patch type: x in map: map[$patch:x name:a]",
        ),
        ({}, {"$patch": "merge"}, ApiError, "unknown patch type: merge in map: map[$patch:merge]"),
        (
            containers("a"),
            {"spec": {"containers": ["a"]}},
            ApiError,
            "list element types are not identical: [[map[name:a]] [a]]",
        ),
        (
            {"metadata": {"flags": [1]}},
            {"metadata": {"flags": [True]}},
            ApiError,
            "list element types are not identical: [[1] [true]]",
        ),
        (finalizers(), {"metadata": {"finalizers": [["b"]]}}, Invalid, REJECTED),
        (
            finalizers("a"),
            {"metadata": {"finalizers": [["b"]]}},
            ApiError,
            "list element types are not identical: [[a] [[b]]]",
        ),
        (
            {},
            [1],
            BadRequest,
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            {"spec": {"keyless": [{"a": 1}]}},
            {"spec": {"keyless": [{"b": 1}]}},
            ApiError,
            "cannot merge lists without merge key for [map[b:1]]",
        ),
        (
            containers("a"),
            {"spec": {"$setElementOrder/containers": named("a"), "containers": named("b")}},
            ApiError,
            "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n"
            "[map[name:a]]\n",
        ),
        (
            containers("a"),
            {"spec": {"$setElementOrder": named("a")}},
            BadRequest,
            "invalid patch format of setElementOrder list",
        ),
        (
            finalizers("a"),
            {"metadata": {"$deleteFromPrimitiveList": ["a"]}},
            BadRequest,
            "invalid patch format of primitive list",
        ),
        (
            {"spec": {"strategy": {}}},
            {"spec": {"strategy": {"$retainKeys": ["a"], "b": 1}}},
            BadRequest,
            "invalid patch format of retainKeys",
        ),
        (
            {"spec": {"strategy": {}}},
            {"spec": {"strategy": {"$retainKeys": "a"}}},
            BadRequest,
            "invalid patch format of retainKeys",
        ),
        (
            containers("a"),
            {"spec": {"$setElementOrder/containers": "a"}},
            ApiError,
            "expected a []interface {}, but received a string",
        ),
        (
            containers("a"),
            {"spec": {"$setElementOrder/containers": named("a"), "containers": ["a"]}},
            ApiError,
            "expected a map[string]interface {}, but received a string",
        ),
        (
            containers("a"),
            {"spec": {"$setElementOrder/containers": ["a"]}},
            ApiError,
            "value for key 0 is not a map",
        ),
        (
            containers(),
            {"spec": {"$setElementOrder/containers": named("a")}},
            ApiError,
            "no elements in any of the given slices",
        ),
        (
            containers("a"),
            {"spec": {"$deleteFromPrimitiveList/containers": named("a")}},
            ApiError,
            "map[name:a] cannot tell the elements of a list apart",
        ),
        (
            {"spec": {"containers": [{"name": {}}]}},
            containers("a"),
            ApiError,
            "map[] cannot tell the elements of a list apart",
        ),
    ],
)
def test_mistakes(
    original: dict[str, Any], patch: dict[str, Any], error: type[ApiError], message: str
) -> None:
    with pytest.raises(ApiError) as refusal:
        strategic.apply(original, patch, POD)
    assert type(refusal.value) is error
    assert refusal.value.message == message


def test_what_a_patch_does_not_touch_is_shared() -> None:
    original: dict[str, Any] = {
        "spec": {"containers": named("a", "b")},
        "status": {"phase": "Running"},
    }
    patch = {"spec": {"containers": [{"name": "b", "image": "x"}]}}
    patched = strategic.apply(original, patch, POD)
    assert patched["status"] is original["status"]
    assert patched["spec"]["containers"][0] is original["spec"]["containers"][0]


names = st.sampled_from("abcde")
unique_names = st.lists(names, unique=True)


@given(unique_names, unique_names)
def test_a_merged_list_is_the_union_in_an_order_both_can_accept(
    live: list[str], wanted: list[str]
) -> None:
    patched = strategic.apply(containers(*live), containers(*wanted), POD)
    merged = [element["name"] for element in patched["spec"]["containers"]]
    assert sorted(merged) == sorted({*live, *wanted})
    assert [name for name in merged if name in wanted] == wanted
    assert [name for name in merged if name not in wanted] == [
        name for name in live if name not in wanted
    ]
    scalars = strategic.apply(finalizers(*live), finalizers(*wanted), POD)
    assert scalars == finalizers(*merged)


values = st.recursive(
    st.integers(0, 3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
)
documents = st.dictionaries(names, values)


@given(documents, documents)
def test_without_a_schema_it_is_a_merge_patch(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge.diff(old, new)
    assert same(strategic.apply(old, patch, UNTYPED), new)


keyed = st.fixed_dictionaries(
    {"name": names}, optional={"image": st.none() | names, "$patch": st.just("delete")}
)
patches = st.fixed_dictionaries(
    {},
    optional={
        "spec": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "containers": st.lists(keyed, max_size=4),
                "$setElementOrder/containers": unique_names.map(lambda found: named(*found)),
                "strategy": st.dictionaries(names | st.just("$retainKeys"), unique_names),
            },
        ),
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "finalizers": unique_names,
                "$deleteFromPrimitiveList/finalizers": unique_names,
                "$setElementOrder/finalizers": unique_names,
            },
        ),
    },
)


@given(unique_names, unique_names, patches)
def test_any_patch_applies_or_is_refused_and_changes_no_input(
    present: list[str], marks: list[str], patch: dict[str, Any]
) -> None:
    original = {**containers(*present), **finalizers(*marks)}
    before = json.dumps([original, patch])
    try:
        strategic.apply(original, patch, POD)
    except ApiError:
        pass
    assert json.dumps([original, patch]) == before
