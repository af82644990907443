"""`why` follows what an object depends on, down to the cause."""

from __future__ import annotations

from typing import Any

from msgspec import convert

from kvestigate.health.model import Subject
from kvestigate.health.why import Step, Why, blocks, explain, placement_of
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.devices import DeviceClass, ResourceClaim, ResourceSlice
from kvestigate.kube.views.pods import Pod
from kvestigate.render.plain import to_text
from kvestigate.snapshot.scheduling import Situation
from tests.health.cluster_of import NOW, cluster_of

Object = dict[str, Any]

OWNER = {"kind": "ReplicaSet", "name": "search-5d", "controller": True}
REPLICA = {"name": "search-5d-x", "labels": {"app": "search", "pod-template-hash": "5d"}}
CLAIM_OF_POD = {"name": "d", "persistentVolumeClaim": {"claimName": "index"}}


def shop(kind: str, name: str, **rest: Any) -> Object:
    metadata = {"name": name, "namespace": "shop", **rest.pop("metadata", {})}
    return {"kind": kind, "metadata": metadata, **rest}


def pending(message: str) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {"phase": "Pending", "conditions": [{**condition, "message": message}]}


BROKEN = [
    shop("Ingress", "front", spec={"rules": [{"http": {"paths": [
        {"path": "/", "backend": {"service": {"name": "search", "port": {"number": 80}}}}]}}]}),
    shop("Service", "search", spec={"selector": {"app": "search"}, "ports": [{"port": 80}]}),
    shop("Deployment", "search", spec={"replicas": 1, "selector": {}}),
    shop("Pod", "search-5d-x", metadata={**REPLICA, "ownerReferences": [OWNER]},
         spec={"volumes": [CLAIM_OF_POD], "containers": [{"name": "main"}]},
         status=pending("pod has unbound immediate PersistentVolumeClaims")),
    shop("PersistentVolumeClaim", "index", spec={"storageClassName": "fast"},
         status={"phase": "Pending"}),
]  # fmt: skip


def why(kind: str, name: str, *objects: Object) -> Why:
    return explain(cluster_of(objects), Subject(kind, name, "shop"), "https://x.test")


def path(step: Step) -> list[str]:
    """The first cause of the first cause, and so on."""
    return [str(step.subject), *(path(step.because[0]) if step.because else ())]


def test_the_story_of_an_ingress_ends_with_the_claim() -> None:
    story = why("Ingress", "front", *BROKEN).story
    assert path(story)[:2] == ["Ingress shop/front", "Service shop/search"]
    assert path(story)[-1] == "PersistentVolumeClaim shop/index"


def test_the_story_is_told_from_the_symptom_to_the_cause() -> None:
    shown = to_text(blocks(why("Service", "search", *BROKEN)))
    assert shown.startswith("Service shop/search: 0 ready endpoints, 0 not ready\n")
    steps = (
        "Deployment shop/search: 1 replica wanted",
        "Pod shop/search-5d-x: Pending",
        "PersistentVolumeClaim shop/index: Pending",
        "StorageClass fast does not exist",
    )
    places = [shown.index(step) for step in steps]
    assert places == sorted(places)
    assert "try: " in shown


def test_a_healthy_object_is_said_to_be_so() -> None:
    healthy = shop("ConfigMap", "settings")
    shown = to_text(blocks(why("ConfigMap", "settings", healthy)))
    assert "Nothing wrong was found with it" in shown


def test_of_many_causes_that_are_alike_a_few_are_told() -> None:
    pods = [
        shop("Pod", f"p{number}", metadata={"labels": {"app": "search"}},
             spec={"containers": [{"name": "main", "image": "x"}]}, status=pending("no"))
        for number in range(9)
    ]  # fmt: skip
    step = why("Service", "search", BROKEN[1], *pods).story
    assert (len(step.because), step.left_out) == (3, 6)


def test_the_decision_of_the_scheduler_is_made_again() -> None:
    def node(name: str, **spec: Any) -> Node:
        ready = [{"type": "Ready", "status": "True"}]
        status = {"allocatable": {"cpu": "2", "pods": "9"}, "conditions": ready}
        return convert({"metadata": {"name": name}, "spec": spec, "status": status}, Node)

    waiting = shop("Pod", "late", spec={"containers": [
        {"name": "main", "resources": {"requests": {"cpu": "4"}}}]})  # fmt: skip
    taint = {"key": "gpu", "effect": "NoSchedule"}
    nodes = [node("small"), node("tainted", taints=[taint]), node("closed", unschedulable=True)]
    listed: dict[str, list[Any]] = {"nodes": nodes, "pods": [convert(waiting, Pod)]}
    placement = placement_of(Situation(NOW, listed), Subject("Pod", "late", "shop"))
    assert placement is not None
    assert {verdict.node: verdict.reasons for verdict in placement.nodes} == {
        "closed": ("node(s) were unschedulable",),
        "small": ("Insufficient cpu",),
        "tainted": ("node(s) had untolerated taint(s)",),
    }
    unread = Situation(NOW, listed, {"nodes": "no"})
    assert placement_of(unread, Subject("Pod", "late", "shop")) is None


def test_a_pod_with_a_claim_is_judged_by_the_devices_of_each_node() -> None:
    ready = {"allocatable": {"pods": "9"}, "conditions": [{"type": "Ready", "status": "True"}]}
    nodes = [convert({"metadata": {"name": name}, "status": ready}, Node) for name in ("a", "b")]
    waiting = shop("Pod", "late", spec={
        "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]})  # fmt: skip
    asked = {"name": "r", "exactly": {"deviceClassName": "gpu.test"}}
    claim = shop("ResourceClaim", "mine", spec={"devices": {"requests": [asked]}})
    offered = {
        "metadata": {"name": "a-gpus"},
        "spec": {
            "driver": "gpu.test",
            "nodeName": "a",
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    }
    listed: dict[str, list[Any]] = {
        "nodes": nodes,
        "pods": [convert(waiting, Pod)],
        "resourceclaims": [convert(claim, ResourceClaim)],
        "resourceslices": [convert(offered, ResourceSlice)],
        "deviceclasses": [convert({"metadata": {"name": "gpu.test"}}, DeviceClass)],
    }
    late = Subject("Pod", "late", "shop")
    placement = placement_of(Situation(NOW, listed), late)
    assert placement is not None
    assert {verdict.node: verdict.reasons for verdict in placement.nodes} == {
        "a": (),
        "b": ("cannot allocate all claims",),
    }
    denied = {name: objects for name, objects in listed.items() if name != "resourceslices"}
    assert placement_of(Situation(NOW, denied, {"resourceslices": "no"}), late) is None
