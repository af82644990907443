"""Small clusters, each with a pod to place: what our scheduler and the real one are put before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tests.bed import Object
from tests.cluster.scheduler.conftest import node, pod

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


PRIORITIES = {"high": 1000, "middle": 500, "polite": 1000}
"""Values of the priority classes; pods of the polite one do not preempt."""


@dataclass(frozen=True)
class Scenario:
    """`nodes` and `present` pods are there when the `pod` comes."""

    name: str
    nodes: tuple[Object, ...]
    pod: Object
    present: tuple[Object, ...] = ()
    others: tuple[tuple[str, Object], ...] = field(default=())
    """Further objects, each with its resource."""


@dataclass(frozen=True)
class Outcome:
    """What becomes of the pod."""

    node: str
    message: str
    nominated: str = ""
    evicted: frozenset[str] = frozenset()


def on(where: str, name: str, **spec: Any) -> Object:
    """A pod that has its node."""
    made = pod(name, **spec)
    made["spec"]["nodeName"] = where
    return made


def sibling(made: Object, uid: str = "rs") -> Object:
    """The pod as one of the replica set `web`."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": uid,
        "controller": True,
    }
    made["metadata"]["ownerReferences"] = [owner]
    return made


def zones(*names: str) -> tuple[Object, ...]:
    """Nodes n1, n2, ... in these zones."""
    return tuple(
        node(f"n{number}", {ZONE: zone} if zone else None) for number, zone in enumerate(names, 1)
    )


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Object:
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def near(app: str, key: str = HOST, **more: Any) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def spread(key: str = ZONE, when: str = "DoNotSchedule", skew: int = 1, **more: Any) -> Object:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


def names_node(name: str) -> Object:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


def expression(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def claim(name: str, kind: str, volume: str = "", mode: str = "ReadWriteOnce") -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": [mode],
            "storageClassName": kind,
            "resources": {"requests": {"storage": "1Gi"}},
            **({"volumeName": volume} if volume else {}),
        },
    }


def uses(*claims: str) -> list[Object]:
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]


def storage_class(name: str, mode: str, provisioner: str = "example.com/disks") -> Object:
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}


def volume(name: str, kind: str, where: str) -> Object:
    """A volume that only one node can reach."""
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [where]}]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": kind,
            "hostPath": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def budget(app: str) -> Object:
    return {
        "metadata": {"name": app},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    }


WEB: Mapping[str, str] = {"app": "web"}
REPLICA_SET = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": WEB},
        "template": {
            "metadata": {"labels": WEB},
            "spec": {"containers": [{"name": "main", "image": "x"}]},
        },
    },
}
TWO = zones("a", "b")
FOUR = zones("a", "a", "b", "b")

SCENARIOS = (
    Scenario("no nodes", (), pod()),
    Scenario("one node", (node(),), pod()),
    Scenario("cpu", (node("n1"), node("n2")), pod(cpu="5")),
    Scenario(
        "cpu and memory",
        (node("n1"), node("n2", allocatable={"memory": "1Gi"})),
        pod(cpu="5", requests={"memory": "2Gi", "nvidia.com/gpu": "1"}),
    ),
    Scenario(
        "gpus",
        (node("n1", allocatable={"nvidia.com/gpu": "2"}), node("n2")),
        pod(requests={"nvidia.com/gpu": "2"}),
        (on("n1", "other", requests={"nvidia.com/gpu": "1"}),),
    ),
    Scenario(
        "pods",
        (node("n1", allocatable={"pods": "1"}),),
        pod(cpu="1"),
        (on("n1", "other", cpu="3500m"),),
    ),
    Scenario("cordoned", (node("n1", unschedulable=True), node("n2", unschedulable=True)), pod()),
    Scenario(
        "taints",
        (
            node("n1", taints=[taint("gpu", value="yes")]),
            node("n2", taints=[taint("old", "NoExecute")]),
            node("n3", unschedulable=True),
        ),
        pod(),
    ),
    Scenario(
        "tolerations",
        (node("n1", taints=[taint("gpu", value="yes")]), node("n2", taints=[taint("old")])),
        pod(tolerations=[{"key": "gpu", "operator": "Equal", "value": "yes"}]),
    ),
    Scenario(
        "avoided taints",
        (node("n1", taints=[taint("slow", "PreferNoSchedule")]), node("n2")),
        pod(cpu="1"),
        (on("n2", "other", cpu="2"),),
    ),
    Scenario("selector", TWO, pod(nodeSelector={ZONE: "c"})),
    Scenario("selected", TWO, pod(nodeSelector={ZONE: "b"})),
    Scenario(
        "node affinity",
        (node("n1", {"size": "3"}), node("n2", {"size": "9"}), node("n3")),
        pod(
            affinity={
                "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [expression("size", "Gt", "5")]}}
            }
        ),
    ),
    Scenario(
        "preferred nodes",
        FOUR,
        pod(
            affinity={
                "nodeAffinity": {
                    PREFERRED: [
                        {"weight": 10, "preference": expression(ZONE, "In", "b")},
                        {"weight": 5, "preference": expression(HOST, "NotIn", "n3")},
                    ]
                }
            }
        ),
    ),
    Scenario("named node", TWO, pod(affinity=names_node("n2"))),
    Scenario("named node is full", TWO, pod(cpu="5", affinity=names_node("n2"))),
    Scenario("named node is missing", TWO, pod(affinity=names_node("n9"))),
    Scenario(
        "ports",
        (node("n1"), node("n2", unschedulable=True)),
        pod(ports=[{"containerPort": 80, "hostPort": 80}]),
        (on("n1", "other", ports=[{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}]),),
    ),
    Scenario(
        "affinity",
        TWO,
        pod(affinity={"podAffinity": {REQUIRED: [near("web", ZONE)]}}),
        (on("n2", "web", labels=WEB),),
    ),
    Scenario("affinity to nobody", TWO, pod(affinity={"podAffinity": {REQUIRED: [near("web")]}})),
    Scenario(
        "affinity to itself",
        (node("n1"),),
        pod(labels=WEB, affinity={"podAffinity": {REQUIRED: [near("web")]}}),
    ),
    Scenario(
        "anti-affinity",
        (*TWO, node("n3", unschedulable=True)),
        pod(affinity={"podAntiAffinity": {REQUIRED: [near("web")]}}),
        (on("n1", "web-1", labels=WEB), on("n2", "web-2", labels=WEB)),
    ),
    Scenario(
        "anti-affinity of those present",
        TWO,
        pod(labels={"app": "db"}),
        (
            on("n1", "x", affinity={"podAntiAffinity": {REQUIRED: [near("db")]}}),
            on(
                "n2",
                "y",
                affinity={
                    "podAntiAffinity": {REQUIRED: [near("db", namespaceSelector={})]},
                },
            ),
        ),
    ),
    Scenario(
        "preferred neighbours",
        FOUR,
        pod(
            affinity={
                "podAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": near("web", ZONE)}]},
                "podAntiAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": near("web")}]},
            }
        ),
        (on("n3", "web", labels=WEB),),
    ),
    Scenario(
        "spread",
        TWO,
        pod(labels=WEB, topologySpreadConstraints=[spread()]),
        (on("n1", "web", labels=WEB),),
    ),
    Scenario(
        "spread is impossible",
        (*TWO, node("n3")),
        pod(labels=WEB, topologySpreadConstraints=[spread()], nodeSelector={ZONE: "a"}),
        (on("n1", "web-1", labels=WEB),),
    ),
    Scenario(
        "spread over nodes that cannot be used",
        (node("n1", {ZONE: "a"}), node("n2", {ZONE: "b"}, taints=[taint("x")]), node("n3")),
        pod(labels=WEB, topologySpreadConstraints=[spread()]),
        (on("n1", "web-1", labels=WEB),),
    ),
    Scenario(
        "spread over usable nodes only",
        (node("n1", {ZONE: "a"}), node("n2", {ZONE: "b"}, taints=[taint("x")])),
        pod(labels=WEB, topologySpreadConstraints=[spread(nodeTaintsPolicy="Honor")]),
        (on("n1", "web-1", labels=WEB),),
    ),
    Scenario(
        "too few domains",
        TWO,
        pod(labels=WEB, topologySpreadConstraints=[spread(minDomains=3)]),
        (on("n1", "web-1", labels=WEB), on("n2", "web-2", labels=WEB)),
    ),
    Scenario(
        "even spread",
        FOUR,
        pod(
            labels=WEB,
            topologySpreadConstraints=[
                spread(when="ScheduleAnyway"),
                spread(HOST, "ScheduleAnyway"),
            ],
        ),
        (
            on("n1", "web-1", labels=WEB),
            on("n2", "web-2", labels=WEB),
            on("n3", "web-3", labels=WEB),
        ),
    ),
    Scenario(
        "emptiest node",
        (node("n1"), node("n2"), node("n3")),
        pod(cpu="500m"),
        (on("n1", "a", cpu="2"), on("n2", "b", cpu="1"), on("n3", "c", cpu="3")),
    ),
    Scenario(
        "balance",
        (node("n1"), node("n2")),
        pod(cpu="1"),
        (
            on("n1", "a", cpu="2", requests={"memory": "1Gi"}),
            on("n2", "b", cpu="1", requests={"memory": "3Gi"}),
        ),
    ),
    Scenario(
        "replicas",
        FOUR,
        sibling(pod(labels=WEB, cpu="100m")),
        (
            sibling(on("n1", "web-1", labels=WEB, cpu="100m")),
            sibling(on("n3", "web-2", labels=WEB, cpu="100m")),
            on("n2", "big", cpu="1"),
        ),
        others=(("replicasets", REPLICA_SET),),
    ),
    Scenario(
        "replicas over zones",
        FOUR,
        sibling(pod(labels=WEB, cpu="100m")),
        (
            sibling(on("n1", "web-1", labels=WEB, cpu="100m")),
            on("n3", "big", cpu="2"),
            on("n4", "huge", cpu="3"),
        ),
        others=(("replicasets", REPLICA_SET),),
    ),
    Scenario(
        "init containers and sidecars",
        (node("n1"),),
        pod(
            cpu="1",
            initContainers=[
                {
                    "name": "side",
                    "image": "x",
                    "restartPolicy": "Always",
                    "resources": {"requests": {"cpu": "1"}},
                },
                {"name": "init", "image": "x", "resources": {"requests": {"cpu": "3500m"}}},
            ],
        ),
    ),
    Scenario("missing claim", TWO, pod(volumes=uses("data"))),
    Scenario(
        "immediate claim",
        TWO,
        pod(volumes=uses("data")),
        others=(
            ("storageclasses", storage_class("now", "Immediate")),
            ("persistentvolumeclaims", claim("data", "now")),
        ),
    ),
    Scenario(
        "claim without a provisioner",
        TWO,
        pod(volumes=uses("data")),
        others=(
            (
                "storageclasses",
                storage_class("local", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"),
            ),
            ("persistentvolumeclaims", claim("data", "local")),
        ),
    ),
    Scenario(
        "claim of one pod only",
        TWO,
        pod(volumes=uses("data")),
        (on("n1", "other", volumes=uses("data")),),
        others=(
            ("storageclasses", storage_class("later", "WaitForFirstConsumer")),
            ("persistentvolumeclaims", claim("data", "later", mode="ReadWriteOncePod")),
        ),
    ),
    Scenario(
        "preemption",
        TWO,
        pod(cpu="3", priorityClassName="high"),
        (
            on("n1", "a", cpu="2"),
            on("n1", "b", cpu="1"),
            on("n2", "c", cpu="3", priorityClassName="middle"),
        ),
    ),
    Scenario(
        "preemption of the fewest",
        (node("n1"), node("n2")),
        pod(cpu="2", priorityClassName="high"),
        (
            on("n1", "a", cpu="1500m"),
            on("n1", "b", cpu="1500m"),
            on("n1", "c", cpu="1"),
            on("n2", "d", cpu="2500m"),
            on("n2", "e", cpu="1500m", priorityClassName="high"),
        ),
    ),
    Scenario(
        "preemption breaks no budget",
        TWO,
        pod(cpu="3", priorityClassName="high"),
        (on("n1", "a", cpu="3", labels=WEB), on("n2", "b", cpu="3", priorityClassName="middle")),
        others=(("poddisruptionbudgets", budget("web")),),
    ),
    Scenario(
        "preemption of equals",
        (*TWO, node("n3", unschedulable=True)),
        pod(cpu="3", priorityClassName="middle"),
        (on("n1", "a", cpu="3", priorityClassName="middle"), on("n2", "b", cpu="3")),
    ),
    Scenario(
        "preemption does not help",
        (node("n1"), node("n2", unschedulable=True)),
        pod(cpu="3", priorityClassName="high"),
        (
            on("n1", "a", cpu="2", priorityClassName="high"),
            on("n1", "b", cpu="1"),
        ),
    ),
    Scenario(
        "preemption is not wanted",
        (node("n1"),),
        pod(cpu="3", priorityClassName="polite"),
        (on("n1", "a", cpu="3"),),
    ),
    Scenario(
        "preemption of those who repel",
        TWO,
        pod(labels={"app": "db"}, priorityClassName="high", nodeSelector={ZONE: "a"}),
        (on("n1", "x", affinity={"podAntiAffinity": {REQUIRED: [near("db")]}}),),
    ),
)

# What the real kube-scheduler does; `test_like_kubernetes` holds it to that.
EXPECTED = msgspec.json.decode(
    Path(__file__).with_name("outcomes.json").read_bytes(), type=dict[str, Outcome]
)
