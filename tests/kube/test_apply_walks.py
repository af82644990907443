"""Objects under a shape: what differs, what is named, what is merged and removed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube.apply import shapes
from kvestigate.kube.apply.checking import misfit
from kvestigate.kube.apply.comparing import compare, compare_new, said_of_new
from kvestigate.kube.apply.elements import Unkeyed
from kvestigate.kube.apply.fieldset import FieldSet, paths, text
from kvestigate.kube.apply.mentioning import mentioned
from kvestigate.kube.apply.merging import merge, remove
from kvestigate.kube.apply.shapes import DEDUCED
from kvestigate.kube.facts import Ownership

Object = dict[str, Any]

POD = shapes.of_definition("io.k8s.api.core.v1.Pod")
VOLUME = shapes.of_definition("io.k8s.api.core.v1.PersistentVolume")
CUSTOM = shapes.of_schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "port": {"type": "integer"},
                                "protocol": {"type": "string", "default": "TCP"},
                            },
                        },
                    },
                    "tags": {
                        "type": "array",
                        "x-kubernetes-list-type": "set",
                        "items": {"type": "string"},
                    },
                    "list": {"type": "array", "items": {"type": "string"}},
                    "whole": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "additionalProperties": {"type": "string"},
                    },
                    "map": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "object",
                            "properties": {"x": {"type": "integer"}},
                        },
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "either": {"x-kubernetes-int-or-string": True},
                },
            }
        },
    }
)


def spec(**fields: Any) -> Object:
    return {"spec": fields}


def shown(fields: FieldSet) -> list[str]:
    return [text(path).removeprefix(".spec") for path in paths(fields)]


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        (spec(size=1), spec(size=2), [], [".size"], []),
        (spec(size=1), spec(), [".size"], [], []),
        (spec(), spec(list=["a"]), [], [], [".list"]),
        (spec(list=["a"]), spec(list=["b"]), [], [".list"], []),
        (spec(tags=["a"]), spec(tags=["b"]), ['.tags[="a"]'], [], ['.tags[="b"]']),
        (spec(tags=["a", "b"]), spec(tags=["b", "a"]), [], [], []),
        (spec(), spec(tags=[]), [], [], [".tags"]),
        (spec(whole={"a": "1"}), spec(whole={"a": "1", "b": "2"}), [], [".whole"], []),
        (spec(map={}), spec(map={"a": {"x": 1}}), [], [], [".map.a", ".map.a.x"]),
        (spec(map=None), spec(map={"a": {}}), [], [], [".map.a"]),
        (spec(map={}), spec(map=None), [], [".map"], []),
        (
            spec(ports=[{"port": 80}]),
            spec(ports=[{"port": 80, "protocol": "TCP"}]),
            [],
            [],
            ['.ports[port=80,protocol="TCP"].protocol'],
        ),
        (
            spec(ports=[{"port": 1}]),
            spec(ports=[{"port": 1}, {"port": 1}]),
            ['.ports[port=1,protocol="TCP"]', '.ports[port=1,protocol="TCP"].port'],
            [],
            ['.ports[port=1,protocol="TCP"]'],
        ),
        (spec(free={"a": {"b": 1}}), spec(free={"a": 1}), [".free.a.b"], [".free.a"], []),
        (spec(free={"a": [1]}), spec(free={"a": [2]}), [], [".free.a"], []),
    ],
)
def test_compare(
    old: Object, new: Object, removed: list[str], modified: list[str], added: list[str]
) -> None:
    found = compare(old, new, CUSTOM)
    assert (shown(found.removed), shown(found.modified), shown(found.added)) == (
        removed,
        modified,
        added,
    )


JSON = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON)


@given(OBJECTS, OBJECTS)
def test_comparing_the_other_way_round_swaps_added_and_removed(old: Object, new: Object) -> None:
    there, back = compare(old, new, DEDUCED), compare(new, old, DEDUCED)
    assert (there.added, there.removed, there.modified) == (
        back.removed,
        back.added,
        back.modified,
    )
    assert (old == new) == (not there.added and not there.removed and not there.modified)


@given(OBJECTS, OBJECTS)
def test_merging_takes_over_all_that_a_configuration_says(live: Object, config: Object) -> None:
    found = compare(merge(live, config, DEDUCED), config, DEDUCED)
    assert not found.added
    assert merge(merge(live, config, DEDUCED), config, DEDUCED) == merge(live, config, DEDUCED)


def test_a_new_object_differs_from_one_of_which_nothing_was_said() -> None:
    containers = [{"name": "a", "image": "i", "resources": {}}]
    pod: Object = {"metadata": {"labels": {"app": "one"}}, "spec": {"containers": containers}}
    found = compare_new(pod, POD)
    assert found == compare({"metadata": {}, **POD.empty}, pod, POD)
    assert [text(path) for path in paths(found.added)][:2] == [
        ".metadata.labels",
        ".metadata.labels.app",
    ]


METADATA = st.dictionaries(st.sampled_from(["name", "labels"]), st.just({}) | st.just({"a": "b"}))
CONTAINER = st.fixed_dictionaries(
    {"name": st.sampled_from("ab")},
    optional={
        "env": st.lists(st.fixed_dictionaries({"name": st.sampled_from("ab")})),
        "args": st.lists(st.sampled_from("ab")),
        "resources": st.dictionaries(st.sampled_from(["limits"]), st.just({"cpu": "1"})),
    },
)
NEW_PODS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": METADATA,
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": st.none() | st.lists(CONTAINER),
                "nodeSelector": st.dictionaries(st.text(max_size=3), st.just("x")),
            },
        ),
        "status": st.none() | st.just({}) | st.just({"phase": "Pending"}),
    },
)


@given(NEW_PODS)
def test_what_is_said_of_a_new_object_is_what_differs_from_nothing(new: Object) -> None:
    assert said_of_new(new, POD) == compare_new(new, POD).touched


@given(OBJECTS)
def test_what_is_said_of_a_new_object_without_a_schema(new: Object) -> None:
    assert said_of_new(new, DEDUCED) == compare_new(new, DEDUCED).touched


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        (spec(size=1), [".size"]),
        (spec(size=None), [".size"]),
        (spec(tags=["a"]), ['.tags[="a"]']),
        (spec(tags=[]), []),
        (spec(list=[]), [".list"]),
        (spec(map={}), [".map"]),
        (spec(map={"a": {"x": 1}}), [".map.a", ".map.a.x"]),
        (spec(whole={"a": "1"}), [".whole"]),
        (spec(free={"a": {"b": 1}}), [".free.a", ".free.a.b"]),
        (
            spec(ports=[{"port": 80}]),
            ['.ports[port=80,protocol="TCP"]', '.ports[port=80,protocol="TCP"].port'],
        ),
        ({"spec": {}}, [""]),
        ({"metadata": {"labels": {"a": "b"}}}, [".metadata.labels.a"]),
    ],
)
def test_mentioned(config: Object, fields: list[str]) -> None:
    assert shown(mentioned(config, CUSTOM)) == fields


@pytest.mark.parametrize(
    ("live", "config", "order"),
    [
        ("abc", "", "abc"),
        ("", "cba", "cba"),
        ("abc", "b", "abc"),
        ("abc", "ca", "bca"),
        ("ab", "xb", "axb"),
        ("ab", "ax", "abx"),
        ("abcd", "dxa", "bcdxa"),
    ],
)
def test_elements_come_in_the_order_of_the_configuration(
    live: str, config: str, order: str
) -> None:
    merged = merge(spec(tags=list(live)), spec(tags=list(config)), CUSTOM)
    assert "".join(merged["spec"]["tags"]) == order


def test_elements_are_merged_by_their_keys() -> None:
    live: Object = spec(containers=[{"name": "a", "image": "i", "env": [{"name": "X"}]}])
    config: Object = spec(containers=[{"name": "a", "image": "j", "env": [{"name": "Y"}]}])
    assert merge(live, config, POD)["spec"]["containers"] == [
        {"name": "a", "image": "j", "env": [{"name": "X"}, {"name": "Y"}]}
    ]


@pytest.mark.parametrize(
    ("value", "items", "left"),
    [
        (spec(size=1, list=["a"]), {"f:spec": {"f:size": {}}}, spec(list=["a"])),
        (spec(tags=["a", "b"]), {"f:spec": {"f:tags": {'v:"a"': {}}}}, spec(tags=["b"])),
        (spec(tags=["a"]), {"f:spec": {"f:tags": {'v:"a"': {}}}}, spec(tags=None)),
        (spec(map={"a": {"x": 1}}), {"f:spec": {"f:map": {".": {}, "f:a": {}}}}, {"spec": None}),
        (spec(size=1), {"f:spec": {}}, {}),
    ],
)
def test_remove(value: Object, items: FieldSet, left: Object) -> None:
    assert remove(value, items, CUSTOM) == left


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        (spec(size=1, either="x", free={"a": [1, {"b": None}]}), ""),
        (spec(either=2), ""),
        (spec(size="1"), ".spec.size: expected numeric (int or float), got string"),
        (spec(colour="red"), ".spec.colour: field not declared in schema"),
        (spec(tags=["a", "a"]), '.spec.tags: duplicate entries for key [="a"]'),
        (spec(list={}), ".spec.list: expected list, got &{map[]}"),
        (spec(map=[1]), ".spec.map: expected map, got &{[1]}"),
        (spec(either=[]), ".spec.either: expected any scalar, got &{[]}"),
        (
            spec(ports=[None]),
            ".spec.ports: element 0: associative list with keys may not have a null element",
        ),
        (
            spec(list=[1, True]),
            "errors:\n  .spec.list[0]: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .spec.list[1]: expected string, got &value.valueUnstructured{Value:true}",
        ),
    ],
)
def test_misfit(config: Object, complaint: str) -> None:
    assert misfit(config, CUSTOM) == complaint


@pytest.mark.parametrize(
    ("elements", "why"),
    [([{}], None), (["a"], "non-map elements"), ([None], "a null element")],
)
def test_elements_without_their_keys(elements: list[Any], why: str | None) -> None:
    """A key with a default can be left out, the element cannot."""
    if why is None:
        assert shown(mentioned(spec(ports=elements), CUSTOM)) == ['.ports[protocol="TCP"]']
        return
    with pytest.raises(Unkeyed, match=why):
        mentioned(spec(ports=elements), CUSTOM)


def test_an_atomic_type_is_divided_where_a_field_says_so() -> None:
    assert VOLUME.fields["spec"].fields["claimRef"].ownership is Ownership.FIELDS
    assert shapes.of_definition("io.k8s.api.core.v1.ObjectReference").ownership is Ownership.WHOLE


def test_types_that_hold_themselves_have_a_shape() -> None:
    props = shapes.of_definition(
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    )
    assert props.fields["not"] is props
