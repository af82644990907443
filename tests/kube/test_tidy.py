"""A glance says the same as the two long looks, or nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube import facts, schema
from kvestigate.kube.facts import Type
from kvestigate.kube.normal import normalised, type_of
from kvestigate.kube.tidy import tidied


def of_kind(group: str, version: str, kind: str) -> facts.Definition:
    found = facts.for_kind(group, version, kind)
    assert found is not None
    return found


POD = of_kind("", "v1", "Pod")
KINDS = [
    POD,
    of_kind("", "v1", "ConfigMap"),
    of_kind("", "v1", "Secret"),
    of_kind("", "v1", "Service"),
    of_kind("", "v1", "Node"),
    of_kind("apps", "v1", "Deployment"),
    of_kind("batch", "v1", "CronJob"),
    of_kind("networking.k8s.io", "v1", "Ingress"),
    of_kind("resource.k8s.io", "v1", "ResourceSlice"),
]


def pod(container: dict[str, Any], **fields: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "a", "image": "b", **container}], **fields}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": spec}


def test_structs_that_were_left_out_are_filled_in_without_touching_what_was_given() -> None:
    given = pod({}, volumes=[{"name": "v", "emptyDir": {}}])
    before = copy.deepcopy(given)
    tidy = tidied(given, POD)
    assert tidy == normalised(given, POD)
    assert tidy is not None
    assert tidy["spec"]["containers"][0]["resources"] == {}
    assert tidy["status"] == {}
    assert tidy["spec"]["volumes"] is given["spec"]["volumes"]
    assert given == before


def test_what_lacks_nothing_is_given_back_itself() -> None:
    whole = {**pod({"resources": {}}), "status": {}}
    assert tidied(whole, POD) is whole


@pytest.mark.parametrize(
    "container",
    [
        {"resources": {"limits": {"memory": "2Gi", "cpu": "1500m", "x.y/z": "0"}}},
        {"volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True}]},
        {"readinessProbe": {"httpGet": {"port": 80, "path": "/"}, "initialDelaySeconds": 3}},
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
        {"securityContext": {"privileged": False, "runAsUser": 0}},
    ],
)
def test_what_people_write_is_told_at_a_glance(container: dict[str, Any]) -> None:
    tidy = tidied(pod(container), POD)
    assert tidy == normalised(pod(container), POD)


@pytest.mark.parametrize(
    "container",
    [
        {"imagee": "b"},
        {"image": 1},
        {"image": ""},
        {"args": []},
        {"args": None},
        {"args": ["a", None]},
        {"stdin": False},
        {"name": None},
        {"resources": None},
        {"resources": {"limits": {"cpu": "1000m"}}},
        {"resources": {"limits": {"cpu": "1000"}}},
        {"resources": {"limits": {"cpu": 1}}},
        {"resources": {"limits": {"memory": "1024Mi"}}},
        {"ports": [{}]},
        {"ports": [{"containerPort": 80, "hostPort": 0}]},
    ],
)
def test_what_is_wrong_or_not_normal_takes_a_second_look(container: dict[str, Any]) -> None:
    assert tidied(pod(container), POD) is None


def test_types_that_hold_themselves_take_a_second_look() -> None:
    definition = of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    assert tidied({"metadata": {"name": "a"}}, definition) is None


SCALARS: dict[Type, Any] = {
    Type.STRING: st.sampled_from(["", "a", "b c"]),
    Type.BYTES: st.sampled_from(["", "YQ==", "YQ"]),
    Type.TIME: st.sampled_from(
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "2026-01-01T01:00:00+01:00"]
    ),
    Type.MICROTIME: st.sampled_from(["2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.5Z"]),
    Type.BOOLEAN: st.booleans(),
    Type.QUANTITY: st.from_regex(r"\A[0-9]{1,5}(\.[0-9])?([numkMGTPE]|[KMGT]i)?\Z")
    | st.sampled_from([0, 7]),
    Type.INT32: st.sampled_from([-1, 0, 1, 2**31]),
    Type.INT64: st.sampled_from([-1, 0, 1]),
    Type.NUMBER: st.sampled_from([-1.5, 0, 0.5, 2]),
    Type.INT_OR_STRING: st.sampled_from([0, 1, "", "80%"]),
    Type.OBJECT: st.sampled_from([{}, {"a": None}, 1]),
    Type.ANY: st.sampled_from([{}, None, "a", False]),
}


@st.composite
def values(draw: st.DrawFn, field: facts.Field, depth: int) -> Any:
    if draw(st.integers(0, 60)) == 0:
        return None
    if field.element is not None:
        inner = values(field.element, depth - 1)
        if field.type is Type.LIST:
            return draw(st.lists(inner, max_size=2))
        return draw(st.dictionaries(st.sampled_from("ab"), inner, max_size=2))
    type_ = type_of(field)
    if type_ is not Type.DEFINED:
        return draw(SCALARS[type_])
    return draw(objects(facts.definition(field.definition), depth - 1))


@st.composite
def objects(draw: st.DrawFn, of: facts.Definition, depth: int) -> dict[str, Any]:
    names = sorted(of.fields) if depth > 0 else []
    chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True)) if names else []
    return {name: draw(values(of.fields[name], depth)) for name in chosen}


@given(st.data())
def test_a_glance_never_says_anything_else_than_the_long_looks(data: st.DataObject) -> None:
    definition = data.draw(st.sampled_from(KINDS))
    obj = data.draw(objects(definition, depth=4))
    tidy = tidied(obj, definition)
    if tidy is not None:
        assert not schema.problems(obj, definition)
        assert tidy == normalised(obj, definition)
