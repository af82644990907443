"""Our definitions, refusals and normal forms, beside those of the API server."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kvestigate.kube import facts, schema
from kvestigate.kube.facts import Field, Type
from kvestigate.kube.normal import normalised
from tests.upstream.judge import Json, Judge, Refused

SCALARS: dict[Type, Json] = {
    Type.STRING: {"type": "string"},
    Type.BYTES: {"type": "string", "format": "byte"},
    Type.TIME: {"type": "string", "format": "date-time"},
    Type.MICROTIME: {"type": "string", "format": "date-time"},
    Type.BOOLEAN: {"type": "boolean"},
    Type.QUANTITY: {"type": "string"},
    Type.INT32: {"type": "integer", "format": "int32"},
    Type.INT64: {"type": "integer", "format": "int64"},
    Type.NUMBER: {"type": "number", "format": "double"},
    Type.INT_OR_STRING: {"type": "string", "format": "int-or-string"},
    Type.OBJECT: {"type": "object"},
    Type.ANY: {},
}


def openapi_field(field: Field) -> Json:
    if field.type is Type.DEFINED:
        document: Json = {"$ref": f"#/definitions/{field.definition}"}
    elif field.element is None:
        document = dict(SCALARS[field.type])
    elif field.type is Type.LIST:
        document = {"type": "array", "items": openapi_field(field.element)}
    else:
        document = {"type": "object", "additionalProperties": openapi_field(field.element)}
    if field.strategies:
        document["x-kubernetes-patch-strategy"] = ",".join(field.strategies)
    if field.merge_key:
        document["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.topology:
        kind = "list" if field.type in (Type.LIST, Type.BYTES) else "map"
        document[f"x-kubernetes-{kind}-type"] = field.topology
    if field.keys:
        document["x-kubernetes-list-map-keys"] = list(field.keys)
    return document


def openapi_definition(definition: facts.Definition) -> Json:
    if definition.scalar is not None:
        return dict(SCALARS[definition.scalar])
    document: Json = {
        "type": "object",
        "properties": {name: openapi_field(it) for name, it in definition.fields.items()},
    }
    if definition.required:
        document["required"] = list(definition.required)
    if definition.ownership is facts.Ownership.WHOLE:
        document["x-kubernetes-map-type"] = "atomic"
    return document


def comparable(document: Any) -> Any:
    """Without what the table leaves out on purpose or, as the enums, no source of it has."""
    if isinstance(document, list):
        return [comparable(it) for it in document]
    if not isinstance(document, dict):
        return document
    left_out = ("description", "x-kubernetes-group-version-kind", "x-kubernetes-unions", "enum")
    return {
        key: sorted(inner)
        if key == "required"
        else {name: comparable(it) for name, it in inner.items()}
        if key == "properties"
        else comparable(inner)
        for key, inner in document.items()
        if key not in left_out
    }


def test_our_definitions_are_the_servers(judge: Judge) -> None:
    definitions = judge.get("/openapi/v2")["definitions"]
    # What custom definitions add, ours of fleets among them, is no fact of Kubernetes.
    served = {name: it for name, it in definitions.items() if name.startswith("io.k8s.")}
    ours = set(facts.definition_names())
    assert set(served) <= ours
    differing = [
        name
        for name in sorted(served)
        if openapi_definition(facts.definition(name)) != comparable(served[name])
    ]
    assert not differing


POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}
ODD: dict[str, list[Any]] = {
    "spec": [[], "x", 3],
    "spec.containers": ["x", {}, ["x"], [[]]],
    "metadata.labels": [[], "x", {"a": 1}, {"a": {}}, {"a": None}, None],
    "metadata.name": [1, True, []],
    "spec.priority": ["1", 1.5, 1.0, 3000000000, True],
    "spec.hostNetwork": ["true", 1, None],
    "spec.terminationGracePeriodSeconds": ["1", 1e30, 1.5, 2**63],
    "spec.containers.0.resources.limits.cpu": [
        *("", "abc", "1.2.3", "1ki", "1e", "1K", "0x1", "1_0", True, []),
        *("1 ", "1.", ".5", "+1", "1E", "1Ei", "1e3", 1, 1.5),
    ],
    "spec.containers.0.resources.limits": [[], 5],
    "metadata.creationTimestamp": [
        *("yesterday", 5, None, "", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z"),
        *("2026-01-01T24:00:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00.5+01:00"),
    ],
    "spec.containers.0.livenessProbe.httpGet.port": [True, 1.5, [], "http"],
    "spec.containers.0.livenessProbe.httpGet": [5],
    "spec.containers.0.livenessProbe.periodSeconds": ["x"],
    "spec.containers.0.ports": [[{"containerPort": "80"}]],
    "spec.containers.0.args": [[1], [None]],
    "spec.containers.0.imagee": [1],
    "spec.nodeSelector": [{"a": {}}],
    "spec.volumes": [
        [{"name": "a", "emptyDir": "x"}],
        [{"name": "v", "emptyDir": {"x": {"y": 1}}}],
    ],
    "spec.securityContext": [5],
    "metadata.ownerReferences": [{}, [5]],
    "metadata.managedFields": [[{"fieldsV1": 3}], [{"fieldsV1": {"a": 1}, "x": 1}]],
    "metadata.foo": [{"bar": 1}],
    "foo": [1],
    "Spec": [{}],
}


def pod_with(path: str, value: Any) -> Json:
    pod = copy.deepcopy(POD)
    *parents, last = path.split(".")
    place: Any = pod
    for step in parents:
        place = place[int(step)] if step.isdigit() else place.setdefault(step, {})
    place[last] = value
    return pod


def definition_of(document: Json) -> facts.Definition:
    group, _, version = document["apiVersion"].rpartition("/")
    found = facts.for_kind(group, version, document["kind"])
    assert found is not None
    return found


def strict_refusal(judge: Judge, namespace: str, pod: Json) -> str:
    """What the server says of an object that does not fit, empty if it does."""
    try:
        judge.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict", pod)
    except Refused as refused:
        if refused.status == 400:
            message: str = json.loads(refused.body)["message"]
            return message
    return ""


def test_what_does_not_fit_is_refused_in_the_servers_words(judge: Judge, namespace: str) -> None:
    differing = []
    for path, value in ((path, value) for path, values in ODD.items() for value in values):
        pod = pod_with(path, value)
        found = schema.problems(pod, definition_of(pod))
        ours = found.mistyped or ", ".join(found.warnings)
        theirs = strict_refusal(judge, namespace, pod)
        if not (theirs.endswith(f": {ours}") if ours else theirs == ""):
            differing.append((path, value, f"server: {theirs}", f"ours: {ours}"))
    assert not differing


def contains(whole: Any, part: Any) -> bool:
    """Whether all of `part` is in `whole`, which may have more fields: defaults."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and contains(whole[key], inner) for key, inner in part.items()
        )
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


@pytest.mark.parametrize(
    ("path", "document"),
    [
        (
            "/api/v1/namespaces/{}/pods",
            {
                **POD,
                "zzz": 1,
                "metadata": {"name": "web", "labels": {"a": None, "b": "c"}, "annotations": None},
                "spec": {
                    "nodeSelector": None,
                    "containers": [
                        {
                            "name": "a",
                            "image": "b",
                            "args": ["x", None],
                            "bar": {},
                            "env": [{"name": "Z", "value": None}],
                            "resources": {
                                "requests": {"cpu": "0.5", "memory": "1024Mi", "x.y/z": 1},
                                "limits": {"memory": 1.5e9, "cpu": "1000m", "x.y/z": 1},
                            },
                        }
                    ],
                },
            },
        ),
        (
            "/api/v1/namespaces/{}/events",
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": "e"},
                "firstTimestamp": "2026-01-01T01:00:00.5+01:00",
                "eventTime": None,
            },
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "l"},
                "spec": {"renewTime": "2026-01-01T01:00:00.500000+01:00"},
            },
        ),
    ],
    ids=["pod", "event", "lease"],
)
def test_our_normal_form_is_what_the_server_keeps(
    path: str, document: Json, judge: Judge, namespace: str
) -> None:
    if document["kind"] == "Event":
        document = {**document, "involvedObject": {"namespace": namespace}}
    kept = judge.post(f"{path.format(namespace)}?dryRun=All&fieldValidation=Ignore", document)
    assert contains(kept, normalised(document, definition_of(document)))
