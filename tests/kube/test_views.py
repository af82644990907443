"""The views: every field exists in the API, and real documents decode into them."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import types
import typing
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kvestigate.errors import InputError
from kvestigate.kube import decode, facts, views
from kvestigate.kube.views.core import Event, Node
from kvestigate.kube.views.meta import PartialObject, View
from kvestigate.kube.views.network import EndpointSlice
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.kube.views.storage import PersistentVolumeClaim
from kvestigate.kube.views.workloads import Job

TABLED = [
    ("", "v1", "Pod"),
    ("", "v1", "Node"),
    ("", "v1", "Namespace"),
    ("", "v1", "Event"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "DaemonSet"),
    ("batch", "v1", "Job"),
    ("", "v1", "Service"),
    ("", "v1", "Endpoints"),
    ("discovery.k8s.io", "v1", "EndpointSlice"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "PersistentVolume"),
    ("storage.k8s.io", "v1", "StorageClass"),
    ("policy", "v1", "PodDisruptionBudget"),
]

PYTHON_TYPES: dict[facts.Type, set[type]] = {
    facts.Type.STRING: {str},
    facts.Type.TIME: {datetime},
    facts.Type.MICROTIME: {datetime},
    facts.Type.BOOLEAN: {bool},
    facts.Type.QUANTITY: {str},
    facts.Type.INT32: {int},
    facts.Type.INT64: {int},
    facts.Type.INT_OR_STRING: {int, str},
}


def view_classes() -> dict[str, type[View]]:
    found: dict[str, type[View]] = {}
    for module in pkgutil.iter_modules(views.__path__, f"{views.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, View):
                found[value.__name__] = value
    return found


VIEWS = view_classes()


def choices(annotation: Any) -> list[Any]:
    """The members of a union, without None."""
    if isinstance(annotation, types.UnionType):
        return [it for it in typing.get_args(annotation) if it is not type(None)]
    return [annotation]


def mismatches(view: type[View], definition: facts.Definition, path: str) -> list[str]:
    found = []
    annotations = typing.get_type_hints(view)
    for attribute, name in zip(view.__struct_fields__, view.__struct_encode_fields__, strict=True):
        field = definition.fields.get(name)
        if field is None:
            found.append(f"{path}.{name}: no such field")
        else:
            found += field_mismatches(choices(annotations[attribute]), field, f"{path}.{name}")
    return found


def field_mismatches(wanted: list[Any], field: facts.Field, path: str) -> list[str]:
    if field.type is facts.Type.DEFINED:
        definition = facts.definition(field.definition)
        if definition.scalar is None:
            (view,) = wanted
            return mismatches(view, definition, path)
        field = facts.Field(definition.scalar)
    if field.element is not None:
        (generic,) = wanted
        container = tuple if field.type is facts.Type.LIST else dict
        if typing.get_origin(generic) is not container:
            return [f"{path}: {generic} for a {field.type}"]
        element = typing.get_args(generic)[0 if container is tuple else 1]
        return field_mismatches(choices(element), field.element, f"{path}[]")
    return [] if set(wanted) == PYTHON_TYPES[field.type] else [f"{path}: {wanted} for {field.type}"]


@pytest.mark.parametrize(("group", "version", "kind"), TABLED)
def test_every_field_of_a_view_is_in_the_api_with_that_type(
    group: str, version: str, kind: str
) -> None:
    definition = facts.for_kind(group, version, kind)
    assert definition is not None
    assert mismatches(VIEWS[kind], definition, kind) == []


def test_the_check_above_sees_a_wrong_field_and_a_wrong_type() -> None:
    class Wrong(View, frozen=True):
        metadata: str = ""
        spek: int = 0

    class Wrongly(View, frozen=True):
        phase: int = 0
        conditions: dict[str, str] = msgspec.field(default_factory=dict)

    pod, status = (
        facts.definition(f"io.k8s.api.core.v1.{name}") for name in ("NamespaceSpec", "PodStatus")
    )
    assert mismatches(Wrong, pod, "w") == ["w.metadata: no such field", "w.spek: no such field"]
    assert len(mismatches(Wrongly, status, "w")) == 2


def test_every_view_decodes_an_empty_object() -> None:
    for view in VIEWS.values():
        assert msgspec.json.decode(b"{}", type=view) == view()


def test_views_are_invisible_to_the_cyclic_collector() -> None:
    pod = decode.decode(b'{"metadata":{"name":"a"}}', Pod)
    assert not gc.is_tracked(pod)
    assert not gc.is_tracked(pod.metadata)


def test_a_pod() -> None:
    document = b"""{
      "apiVersion": "v1", "kind": "Pod",
      "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"},
        "creationTimestamp": "2026-05-20T10:00:00Z", "managedFields": [{"fieldsV1": {"f:a": {}}}],
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web",
          "uid": "u", "controller": true, "blockOwnerDeletion": true}]},
      "spec": {
        "nodeName": "node-1", "priority": 100,
        "initContainers": [{"name": "proxy", "image": "p", "restartPolicy": "Always"}],
        "containers": [{"name": "web", "image": "web:1",
          "env": [{"name": "TOKEN", "value": "hush"}],
          "ports": [{"containerPort": 80, "hostIP": "10.0.0.1"}],
          "resources": {"requests": {"cpu": "100m", "nvidia.com/gpu": "1"}}}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
          {"nodeSelectorTerms": [{"matchExpressions":
            [{"key": "gpu", "operator": "In", "values": ["a100"]}]}]}}},
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
          {"name": "scratch", "emptyDir": {}}]},
      "status": {"phase": "Running", "podIP": "10.1.0.7", "podIPs": [{"ip": "10.1.0.7"}],
        "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null}],
        "containerStatuses": [{"name": "web", "ready": true, "restartCount": 3,
          "imageID": "sha256:1", "state": {"running": {"startedAt": "2026-05-20T11:00:00Z"}},
          "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled",
            "startedAt": null}}}]}
    }"""
    pod = decode.decode(document, Pod)
    assert pod.metadata.creation_timestamp == datetime(2026, 5, 20, 10, tzinfo=UTC)
    assert pod.metadata.owner_references[0].controller
    assert pod.spec.init_containers[0].restart_policy == "Always"
    assert pod.spec.containers[0].resources.requests == {"cpu": "100m", "nvidia.com/gpu": "1"}
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    assert pod.spec.affinity.node_affinity.required is not None
    term = pod.spec.affinity.node_affinity.required.node_selector_terms[0]
    assert term.match_expressions[0].values == ("a100",)
    assert pod.spec.volumes[0].persistent_volume_claim is not None
    assert pod.spec.volumes[1].persistent_volume_claim is None
    assert pod.status.pod_ip == "10.1.0.7"
    terminated = pod.status.container_statuses[0].last_state.terminated
    assert terminated is not None
    assert (terminated.exit_code, terminated.started_at) == (137, None)
    assert "hush" not in repr(pod), "values of variables may be secrets"


def test_absence_and_emptiness_differ_where_the_api_says_so() -> None:
    unset = decode.decode(b'{"spec":{}}', PersistentVolumeClaim)
    empty = decode.decode(b'{"spec":{"storageClassName":""}}', PersistentVolumeClaim)
    assert unset.spec.storage_class_name is None
    assert empty.spec.storage_class_name == ""
    budget = decode.decode(b'{"spec":{"minAvailable":"50%"}}', PodDisruptionBudget)
    assert budget.spec.min_available == "50%"
    assert budget.spec.max_unavailable is None
    assert budget.spec.selector is None


@pytest.mark.parametrize(
    ("view", "document"),
    [
        (EndpointSlice, '{"addressType":"IPv4","endpoints":null,"ports":null}'),
        (Pod, '{"spec":{"containers":[{"name":"a","env":null,"resources":null}],"volumes":null}}'),
        (Pod, '{"metadata":{"labels":null,"annotations":{"a":null}},"spec":null,"status":null}'),
        (Event, '{"metadata":{"creationTimestamp":null},"eventTime":null,"series":null}'),
        (Node, '{"spec":{"taints":null},"status":{"capacity":null,"conditions":null}}'),
        (Job, '{"spec":{"template":{"metadata":{"creationTimestamp":null}}}}'),
    ],
)
def test_null_is_the_same_as_absent(view: type[View], document: str) -> None:
    object_ = decode.decode(document.encode(), view)
    page = decode.decode_page(f'{{"items":[{document}]}}'.encode(), view)
    assert page.items == (object_,)


def test_a_page() -> None:
    page = decode.decode_page(
        b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"17","continue":"abc",'
        b'"remainingItemCount":9},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}',
        Pod,
    )
    assert [pod.metadata.name for pod in page.items] == ["a", "b"]
    assert page.metadata == decode.ListMeta("17", "abc", 9)


def test_a_page_without_items() -> None:
    for document in (b"{}", b'{"items":null,"metadata":null}', b'{"items":[]}'):
        assert decode.decode_page(document, Pod) == decode.ListPage()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"<html>", "pods: not JSON: "),
        (b"", "pods: not JSON: "),
        (b'{"metadata":{"continue":"\xff"}}', "pods: not JSON: "),
        (b'{"items":[{"spec":{"priority":"high"}}]}', "pods: not a Pod: .*spec.priority"),
        (b"[]", "pods: not a "),
    ],
)
def test_what_does_not_fit_is_named(document: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decode.decode_page(document, Pod, where="pods")


def test_one_object_that_does_not_fit() -> None:
    with pytest.raises(InputError, match=r"not a PartialObject: .*metadata.name"):
        decode.decode(b'{"metadata":{"name":1}}', PartialObject)
    with pytest.raises(InputError, match="not JSON"):
        decode.decode(b'{"metadata":', PartialObject)


def test_decoders_are_built_once() -> None:
    assert decode.decoder_for(Pod) is decode.decoder_for(Pod)
