"""Fields that differ, by the names people use, and without secrets."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.manifests.difference import differences
from kvestigate.manifests.model import Change


def body(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}} | fields


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 2}, [Change("spec.a", "1", "2")]),
        ({"a": "x"}, {}, [Change("spec.a", "x", None)]),
        ({}, {"a": {"b": True}}, [Change("spec.a.b", None, "true")]),
        ({"a": []}, {}, []),
        ({"a": [1, 2]}, {"a": [1]}, [Change("spec.a[1]", "2", None)]),
        (
            {"c": [{"name": "x", "image": "1"}, {"name": "y"}]},
            {"c": [{"name": "y"}, {"name": "x", "image": "2"}]},
            [Change("spec.c[x].image", "1", "2")],
        ),
        ({"a/b": "1"}, {"a/b": "2"}, [Change("spec[a/b]", "1", "2")]),
        ({"a": "y" * 300}, {}, [Change("spec.a", "y" * 200 + "... (300 characters)", None)]),
    ],
)
def test_fields(before: dict[str, Any], after: dict[str, Any], found: list[Change]) -> None:
    assert list(differences(body(spec=before), body(spec=after))) == found


def test_what_the_server_writes_is_no_difference() -> None:
    old = body(metadata={"name": "a", "resourceVersion": "1", "generation": 1, "uid": "u"})
    new = body(metadata={"name": "a", "resourceVersion": "2", "generation": 2, "managedFields": []})
    assert differences(old, new) == ()


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, []),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, []),
        # Whether a custom resource's status is written apart is not known here.
        ({"apiVersion": "example.org/v1", "kind": "Widget"}, [Change("status.ready", "1", "2")]),
    ],
)
def test_what_controllers_write_is_no_difference(kind: dict[str, str], found: list[Change]) -> None:
    old, new = body(**kind, status={"ready": 1}), body(**kind, status={"ready": 2})
    assert list(differences(old, new)) == found


SECRET = "c3VwZXJzZWNyZXQ="


def secret(**data: str) -> dict[str, Any]:
    last = {"kubectl.kubernetes.io/last-applied-configuration": str(data)}
    return body(kind="Secret", metadata={"name": "s", "annotations": last}, data=data)


def test_of_a_secret_only_sizes_are_told() -> None:
    other = base64.b64encode(b"SUPERSECRET").decode()
    found = differences(secret(a=SECRET, b=SECRET), secret(a=other, c=SECRET))
    assert found == (
        Change("data.a", "(11 bytes)", "(11 bytes), other content"),
        Change("data.b", "(11 bytes)", None),
        Change("data.c", None, "(11 bytes)"),
    )


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(values, values)
def test_equal_bodies_do_not_differ_and_others_differ_both_ways(a: Any, b: Any) -> None:
    assert differences(body(spec=a), body(spec=a)) == ()
    assert bool(differences(body(spec=a), body(spec=b))) == bool(
        differences(body(spec=b), body(spec=a))
    )
