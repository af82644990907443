"""Structural schemas divide custom resources among managers as kube-apiserver has them divided.

A history runs on the real server; each of its steps is then taken again from the object that the
server had before, and must end with the managers, or the conflict, that the server ended with.
"""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from kvestigate.errors import to_status
from kvestigate.kube.apply import managers, ownership, shapes
from kvestigate.kube.apply.fieldset import FieldSet
from kvestigate.kube.apply.managers import APPLY, UPDATE, Managers
from kvestigate.kube.apply.ownership import Contested, Writer
from tests.differential.running import run
from tests.differential.script import TYPES, Script, Step
from tests.differential.server import RealServer
from tests.real.applying import Topic, history
from tests.upstream.cluster import UpstreamCluster

GROUP, VERSION = "applying.example.com", "applying.example.com/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list(items: Any, kind: str, *keys: str) -> dict[str, Any]:
    listed = {"type": "array", "items": items, "x-kubernetes-list-type": kind}
    return {**listed, "x-kubernetes-list-map-keys": list(keys)} if keys else listed


_STRING, _INTEGER = {"type": "string"}, {"type": "integer"}
_FREE = {"x-kubernetes-preserve-unknown-fields": True}
_PORT = _object(port=_INTEGER, protocol={"type": "string", "default": "TCP"}, name=_STRING)
_CONDITION = _object(type=_STRING, status=_STRING)
SCHEMA = _object(
    spec=_object(
        n=_INTEGER,
        s=_STRING,
        b={"type": "boolean"},
        ports=_list({**_PORT, "required": ["port"]}, "map", "port", "protocol"),
        tags=_list(_STRING, "set"),
        numbers=_list(_INTEGER, "set"),
        list={"type": "array", "items": _object(a=_STRING)},
        whole={**_object(a=_STRING, b=_STRING), "x-kubernetes-map-type": "atomic"},
        map={"type": "object", "additionalProperties": _object(x=_INTEGER, y=_STRING)},
        free={"type": "object", **_FREE},
        any=_FREE,
        mixed={**_object(known=_object(k=_STRING)), **_FREE},
        either={"x-kubernetes-int-or-string": True},
    ),
    status=_object(
        phase=_STRING, conditions=_list({**_CONDITION, "required": ["type"]}, "map", "type")
    ),
)
SHAPE = shapes.of_schema(SCHEMA)
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"gizmos.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "gizmos", "kind": "Gizmo"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}


def _spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


GIZMO = Topic(
    f"/apis/{VERSION}/namespaces/{{ns}}/gizmos",
    {"apiVersion": VERSION, "kind": "Gizmo", "metadata": {"name": "a"}},
    (
        _spec(),
        _spec(n=1),
        _spec(n=2, s="x"),
        _spec(b=False, s="y"),
        _spec(ports=[{"port": 80, "protocol": "TCP"}]),
        _spec(ports=[{"port": 80, "protocol": "UDP"}, {"port": 443, "protocol": "TCP"}]),
        _spec(ports=[{"port": 80, "protocol": "TCP", "name": "web"}]),
        _spec(tags=["a", "b<c"]),
        _spec(tags=["b<c", "d"]),
        _spec(numbers=[3, 10, 2]),
        _spec(numbers=[10]),
        _spec(list=[{"a": "1"}]),
        _spec(list=[]),
        _spec(whole={"a": "1"}),
        _spec(whole={"b": "2"}),
        _spec(map={"k": {"x": 1}}),
        _spec(map={"k": {"y": "z"}, "l": {"x": 2}}),
        _spec(map={"k": {}}),
        _spec(free={"a": {"b": 1}, "l": [1, 2]}),
        _spec(free={"a": {"c": 2}, "e": {}}),
        _spec(any={"a": {"b": 1}}),
        _spec(any=[1]),
        _spec(mixed={"known": {"k": "v"}, "u": {"v": 1}}),
        _spec(mixed={"u": {"w": 2}}),
        _spec(either=1),
        _spec(either="a"),
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"labels": {"a": "c"}, "annotations": {"d": "e"}}},
    ),
    replaced=False,
    patches=("merge",),
    status=(
        {"status": {"phase": "x"}},
        {"status": {"phase": "y", "conditions": [{"type": "A", "status": "T"}]}},
        {"status": {"conditions": [{"type": "B"}]}},
    ),
)

_IGNORED: dict[str, FieldSet] = {
    "": {"f:status": {}},
    "status": {"f:spec": {}, "f:metadata": {}},
}


@pytest.mark.parametrize("seed", range(30))
async def test_custom_resources_have_the_same_managers(
    seed: int, kubernetes: UpstreamCluster
) -> None:
    told = history("gizmo", seed, GIZMO)
    ready = (
        Step("POST", CRDS, CRD, quiet=True),
        Step("GET", f"/apis/{VERSION}/gizmos", until=200, quiet=True),
    )
    script = Script(told.topic, told.name, (*ready, *told.steps), managed=True)
    context = ssl.create_default_context(cafile=str(kubernetes.ca_file))
    answers = (await run(script, RealServer(kubernetes.port, context)))[len(ready) :]
    live: dict[str, Any] | None = None
    for step, answer in zip(told.steps, answers, strict=True):
        body = answer["body"]
        if answer["status"] in (200, 201):
            assert _after(step, live, body) == _fields(_managers(body)), step
            live = body
        elif answer["status"] == 409:
            with pytest.raises(Contested) as caught:
                _after(step, live, None)
            refused = to_status(ownership.refusal(caught.value))
            assert refused["message"] == body["message"]


def _after(step: Step, live: dict[str, Any] | None, new: dict[str, Any] | None) -> Any:
    """What is managed by whom after a step, as we have it."""
    path, _, query = step.path.partition("?")
    name = query.removeprefix("fieldManager=").partition("&")[0]
    part = "status" if path.endswith("/status") else ""
    applies = step.headers.get("content-type") == TYPES["apply"]
    key = managers.manager(name, APPLY if applies else UPDATE, VERSION, part)
    by = Writer(key, VERSION, SHAPE, lambda *_: None, _IGNORED[part])
    known = _managers(live) if live is not None else {}
    if not applies:
        assert new is not None
        if live is not None and not known:
            return {}  # an object that nobody manages stays so until it is applied
        return _fields(ownership.write(live, new, known, by, None))
    if live is not None and not known:
        first = managers.manager(managers.BEFORE_APPLY, UPDATE, VERSION, part)
        before = Writer(first, VERSION, SHAPE, lambda *_: None, _IGNORED[part])
        known = ownership.write(None, live, {}, before, None)
    force = "force=true" in query
    start = {"metadata": {}} if live is None else live
    _, after = ownership.apply(start, step.body, known, by, force=force, now=None)
    return _fields(after)


def _managers(obj: dict[str, Any]) -> Managers:
    return managers.decode(obj["metadata"].get("managedFields"))


def _fields(known: Managers) -> dict[Any, FieldSet]:
    return {key: entry.fields for key, entry in known.items()}
