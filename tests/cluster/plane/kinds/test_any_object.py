"""Whatever fits its type gets an answer, and never an internal error."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from kvestigate.kube import facts
from kvestigate.kube.builtins import resource
from kvestigate.kube.facts import Field, Type
from tests.cluster.plane.conftest import Api

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
OBJECTS = 40
DEPTH = 7

WORDS = ("", "a", "A_", "Always", "None", "/x", "ClusterIP", "192.0.2.1", "Container", "In")
KEYS = ("a", "a b", "cpu", "memory", "storage", "example.com/x")
SCALARS: dict[Type, tuple[Any, ...]] = {
    Type.STRING: WORDS,
    Type.BYTES: ("", "YQ=="),
    Type.BOOLEAN: (True, False),
    Type.INT32: (-1, 0, 1, 80, 70000),
    Type.INT64: (-1, 0, 1, 80, 10**12),
    Type.NUMBER: (1.5,),
    Type.QUANTITY: ("1", "-1", "1.5", "100m", "1Gi", "0"),
    Type.INT_OR_STRING: (0, 80, "http", "", "50%"),
    Type.TIME: ("2026-01-01T00:00:00Z", None),
    Type.MICROTIME: ("2026-01-01T00:00:00.000000Z", None),
    Type.OBJECT: ({},),
    Type.ANY: (1,),
}


def any_value(field: Field, draw: Random, depth: int) -> Any:
    if field.element is not None:
        element = field.element
        count = draw.randint(0, 2) if depth > 0 else 0
        values = [any_value(element, draw, depth - 1) for _ in range(count)]
        return values if field.type is Type.LIST else dict(zip(KEYS, values, strict=False))
    if field.type is not Type.DEFINED:
        return draw.choice(SCALARS[field.type])
    of = facts.definition(field.definition)
    if of.scalar is not None:
        return draw.choice(SCALARS[of.scalar])
    names = draw.sample(sorted(of.fields), min(len(of.fields), draw.randint(0, 5)))
    return {name: any_value(of.fields[name], draw, depth - 1) for name in names if depth > 0}


def any_object(kind: str, name: str, draw: Random) -> dict[str, Any]:
    of = facts.for_kind("", "v1", kind)
    assert of is not None
    fields = {key: of.fields[key] for key in of.fields if key not in ("kind", "apiVersion")}
    obj = {key: any_value(field, draw, DEPTH) for key, field in fields.items()}
    return {**obj, "metadata": {"name": name}}


CHANGES: tuple[Callable[[str], tuple[str, dict[str, Any]]], ...] = (
    lambda path: (path, {"metadata": {"labels": {"a": "b"}}}),
    lambda path: (f"{path}/status", {"status": None}),
    lambda path: (path, {"spec": None}),
)


@pytest.mark.parametrize(
    "plural",
    [
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "serviceaccounts",
        "services",
    ],
)
async def test_no_object_breaks_the_server(api: Api, plural: str) -> None:
    of = resource(plural)
    collection = of.path(namespace="default")
    for number in range(OBJECTS):
        obj = any_object(of.kind, f"o{number}", Random(f"{plural}/{number}"))
        made = await api.post(collection, obj)
        assert made.status < 500, (obj, made.body)
        if made.status != 201:
            continue
        path = f"{collection}/o{number}"
        for change in CHANGES:
            answer = await api.patch(*change(path))
            assert answer.status < 500, (obj, answer.body)
    shown = await api.get(collection, accept=TABLE)
    assert shown.status == 200
