"""A move is made only where the pod can come back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.optimize.consolidation import Move
from kvestigate.optimize.steps import TargetRoom, obstacle, steps
from tests.snapshot.objects import container, node

MOVE = Move("ml", "web-0", 1, "a", "z")
OWNED = [{"kind": "StatefulSet", "name": "web", "controller": True}]
TAINT = {"key": "dedicated", "value": "infra", "effect": "NoSchedule"}


def pod(*, owners: Any = OWNED, meta: Any = None, phase: str = "Running", **spec: Any) -> Pod:
    body = {
        "metadata": {"name": "web-0", "namespace": "ml", "ownerReferences": owners, **(meta or {})},
        "spec": {"nodeName": "a", **spec},
        "status": {"phase": phase},
    }
    return msgspec.convert(body, Pod)


def target(*, ready: bool = True, cpu: int = 1000, pods: int = 1, **spec: Any) -> TargetRoom:
    """With so much left."""
    body = node("z", labels={"pool": "gpu"}, gpu="8") | {"spec": spec}
    if not ready:
        body["status"]["conditions"] = []
    return TargetRoom(msgspec.convert(body, Node), {"cpu": cpu, "pods": pods})


@pytest.mark.parametrize(
    ("found", "onto", "reason"),
    [
        (pod(), target(), ""),
        (pod(nodeSelector={"pool": "gpu"}), target(), ""),
        (pod(tolerations=[{"operator": "Exists"}]), target(taints=[TAINT]), ""),
        (pod(), target(taints=[TAINT | {"effect": "PreferNoSchedule"}]), ""),
        (None, target(), "no longer on a"),
        (pod(owners=[]), target(), "no controller would recreate it"),
        (pod(owners=[OWNED[0] | {"kind": "DaemonSet"}]), target(), "managed by a DaemonSet"),
        (pod(phase="Succeeded"), target(), "completed"),
        (pod(meta={"namespace": "kube-system"}), target(), "in a system namespace"),
        (pod(), None, "node z no longer exists"),
        (pod(), target(unschedulable=True), "node z is not schedulable"),
        (pod(), target(ready=False), "node z is not schedulable"),
        (pod(nodeSelector={"pool": "cpu"}), target(), "node selector or affinity"),
        (pod(), target(taints=[TAINT]), "taint dedicated of z is not tolerated"),
        (pod(containers=[container(cpu="1")]), target(), ""),
        (pod(containers=[container(cpu="2")]), target(), "insufficient cpu on z"),
        (pod(), target(pods=0), "insufficient pods on z"),
        (pod(containers=[container(gpu="1")]), target(), "insufficient nvidia.com/gpu on z"),
    ],
)
def test_what_keeps_a_pod(found: Pod | None, onto: TargetRoom | None, reason: str) -> None:
    said = obstacle(MOVE, found, onto)
    assert said.startswith(reason)
    assert bool(said) == bool(reason)


def test_places_fill_up_and_waves_count_those_who_go() -> None:
    moves = [Move("ml", f"web-{at}", 1, "a", "z") for at in range(5)]
    there = pod(containers=[container(cpu="1")])
    found = [(move, None if at == 1 else there) for at, move in enumerate(moves)]
    made = list(steps(found, {"z": target(cpu=3000, pods=9)}, 2))
    assert [it.wave for it in made] == [1, 0, 1, 2, 0]
    assert [it.outcome for it in made] == ["not asked", "kept", "not asked", "not asked", "kept"]
    assert made[4].reason == "insufficient cpu on z"
