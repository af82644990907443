"""A plan excludes the nodes that the scheduler's own filters exclude."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kvestigate.kube.selectors import EVERYTHING
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod, PodSpec
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim
from kvestigate.planning.model import Demand
from kvestigate.planning.nodes import scheduler_refusals
from kvestigate.planning.plan import solved
from kvestigate.snapshot.scheduling import Situation
from tests.snapshot.objects import node

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
PORT = {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
APART = {"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}}
MOUNTS = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}
CLAIM = msgspec.convert(
    {
        "metadata": {"name": "d", "namespace": "shop"},
        "spec": {"volumeName": "v"},
        "status": {"phase": "Bound"},
    },
    PersistentVolumeClaim,
)
NODES = [
    msgspec.convert(node(name, cpu="8", pods="9", labels={HOST: name, ZONE: name}), Node)
    for name in ("a", "b")
]


def volume(**given: Any) -> PersistentVolume:
    return msgspec.convert({"metadata": {"name": "v", **given}}, PersistentVolume)


def situation(spec: dict[str, Any], *volumes: PersistentVolume) -> Situation:
    """With one pod on `a`, of this spec."""
    meta = {"name": "p", "uid": "p", "namespace": "shop", "labels": {"app": "db"}}
    there = msgspec.convert(
        {"metadata": meta, "spec": {"nodeName": "a", **spec}, "status": {"phase": "Running"}}, Pod
    )
    listed: dict[str, list[Any]] = {"nodes": NODES, "pods": [there]}
    if volumes:
        listed |= {"persistentvolumeclaims": [CLAIM], "persistentvolumes": list(volumes)}
    return Situation(WHEN, listed)


def demand(spec: dict[str, Any], replicas: int = 2) -> Demand:
    return Demand(
        replicas=replicas,
        need={"cpu": 1000, "pods": 1},
        labels=EVERYTHING,
        spec=msgspec.convert(spec, PodSpec),
        own_labels={"app": "web"},
        namespace="shop",
    )


@pytest.mark.parametrize(
    ("there", "wanted", "refused"),
    [
        (situation({}), {}, {}),
        (situation(PORT), PORT, {"a": "has the pod's host port in use"}),
        (situation(APART), {}, {"a": "runs a pod whose anti-affinity excludes this pod"}),
        (
            situation({}),
            MOUNTS,
            dict.fromkeys("ab", 'does not fit: persistentvolumeclaim "d" not found'),
        ),
        (situation({}, volume()), MOUNTS, {}),
        (
            situation({}, volume(labels={ZONE: "b"})),
            MOUNTS,
            {"a": "is in another zone than the pod's volume"},
        ),
    ],
)
def test_what_the_scheduler_would_refuse(
    there: Situation, wanted: dict[str, Any], refused: dict[str, str]
) -> None:
    asked = demand(wanted)
    found = scheduler_refusals(asked, there.state())
    assert found == refused
    plan = solved(asked, there.nodes, there.pods, when=WHEN, server="s", refusals=found)
    assert {row.name for row in plan.nodes if row.barred} == set(refused)


def test_a_host_port_serves_one_replica_of_a_node() -> None:
    there = situation({})
    for replicas, fits in ((2, True), (3, False)):
        asked = demand(PORT, replicas)
        assert solved(asked, there.nodes, there.pods, when=WHEN, server="s").fits is fits
