"""A move is made only where the pod can come back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.optimize.apply import obstacle
from kvestigate.optimize.consolidation import Move
from tests.observe.objects import node

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


def target(*, ready: bool = True, **spec: Any) -> Node:
    body = node("z", labels={"pool": "gpu"}, gpu="8") | {"spec": spec}
    if not ready:
        body["status"]["conditions"] = []
    return msgspec.convert(body, Node)


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
    ],
)
def test_what_keeps_a_pod(found: Pod | None, onto: Node | None, reason: str) -> None:
    said = obstacle(MOVE, found, onto)
    assert said.startswith(reason)
    assert bool(said) == bool(reason)
