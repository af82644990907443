"""A move is made only where the pod can come back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.optimize.consolidation import Move
from kvestigate.optimize.steps import Place, obstacle, steps
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


def target(*, ready: bool = True, cpu: int = 1000, pods: int = 1, **spec: Any) -> Place:
    """With so much left."""
    body = node("z", labels={"pool": "gpu"}, gpu="8") | {"spec": spec}
    if not ready:
        body["status"]["conditions"] = []
    return Place(msgspec.convert(body, Node), {"cpu": cpu, "pods": pods})


@pytest.mark.parametrize(
    ("found", "onto", "reason"),
    [
        (pod(), target(), ""),
        (pod(nodeSelector={"pool": "gpu"}), target(), ""),
        (pod(tolerations=[{"operator": "Exists"}]), target(taints=[TAINT]), ""),
        (pod(), target(taints=[TAINT | {"effect": "PreferNoSchedule"}]), ""),
        (None, target(), "it is not on a any more"),
        (pod(owners=[]), target(), "nothing would start it again"),
        (pod(owners=[OWNED[0] | {"kind": "DaemonSet"}]), target(), "its DaemonSet would start it"),
        (pod(phase="Succeeded"), target(), "completed"),
        (pod(meta={"namespace": "kube-system"}), target(), "in a system namespace"),
        (pod(), None, "z is not there any more"),
        (pod(), target(unschedulable=True), "z takes no new pods now"),
        (pod(), target(ready=False), "z takes no new pods now"),
        (pod(nodeSelector={"pool": "cpu"}), target(), "its node selector or affinity"),
        (pod(), target(taints=[TAINT]), "it does not tolerate dedicated of z"),
        (pod(containers=[container(cpu="1")]), target(), ""),
        (pod(containers=[container(cpu="2")]), target(), "z is short of cpu"),
        (pod(), target(pods=0), "z is short of pods"),
        (pod(containers=[container(gpu="1")]), target(), "z is short of nvidia.com/gpu"),
    ],
)
def test_what_keeps_a_pod(found: Pod | None, onto: Place | None, reason: str) -> None:
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
    assert made[4].reason == "z is short of cpu"
