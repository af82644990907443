"""What a node's lease and conditions mean: its conditions, and the taints that follow. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.times import seconds, stamp
from kvestigate.kube.eligibility import tolerates
from kvestigate.kube.views.core import Node, NodeCondition, Taint
from kvestigate.kube.views.pods import Pod

GRACE = 50.0
"""Seconds without a sign of life after which a node counts as lost."""

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OURS = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()})
_LIFE = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True)
class Decision:
    conditions: tuple[NodeCondition, ...]
    taints: tuple[Taint, ...]
    pause: float
    """Seconds until the node would be lost if nothing more is heard of it."""


def decide(node: Node, heard: float, now: float) -> Decision:
    """`heard` is when the last sign of life was noticed."""
    left = heard + GRACE - now
    present = node.status.conditions
    if left <= 0:
        present = _lost(present, now)
    return Decision(present, _taints(node, present, now), max(left, 1.0) if left > 0 else GRACE)


def _lost(present: tuple[NodeCondition, ...], now: float) -> tuple[NodeCondition, ...]:
    message = "Kubelet stopped posting node status."
    for kind in _LIFE:
        old = conditions.find(present, kind)
        if old is not None and old.status == "Unknown":
            continue
        reason = "NodeStatusUnknown"
        if old is None:
            reason, message = "NodeStatusNeverUpdated", "Kubelet never posted node status."
        lost = NodeCondition(
            type=kind,
            status="Unknown",
            reason=reason,
            message=message,
            last_transition_time=stamp(now),
            last_heartbeat_time=old.last_heartbeat_time if old else None,
        )
        present = tuple(lost if condition.type == kind else condition for condition in present)
        if old is None:
            present = (*present, lost)
    return present


def _taints(node: Node, reported: tuple[NodeCondition, ...], now: float) -> tuple[Taint, ...]:
    ready = conditions.find(reported, "Ready")
    wanted: list[tuple[str, str]] = []
    if ready is None:  # it has not spoken yet: what it was given at birth stays
        born = [own for own in node.spec.taints if own.key in (NOT_READY, UNREACHABLE)]
        wanted += [(own.key, own.effect) for own in born]
    elif ready.status == "False":
        wanted += [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]
    elif ready.status != "True":
        wanted += [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]
    wanted += [
        (key, "NoSchedule")
        for kind, key in _PRESSURES.items()
        if conditions.is_true(reported, kind)
    ]
    if node.spec.unschedulable:
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    present = {(taint.key, taint.effect): taint for taint in node.spec.taints}
    others = tuple(taint for taint in node.spec.taints if taint.key not in _OURS)
    new = tuple(
        present.get((key, effect)) or Taint(key, "", effect, stamp(now)) for key, effect in wanted
    )
    return (*others, *new)


def time_to_stay(pod: Pod, taints: Sequence[Taint], now: float) -> float | None:
    """Seconds until NoExecute taints drive a pod away; None if it may stay for good."""
    left: float | None = None
    for taint in taints:
        if taint.effect != "NoExecute":
            continue
        matching = [
            toleration for toleration in pod.spec.tolerations if tolerates(toleration, taint)
        ]
        if not matching:
            return 0.0
        limits = [
            toleration.toleration_seconds
            for toleration in matching
            if toleration.toleration_seconds is not None
        ]
        if limits:
            until = seconds(taint.time_added, now) + max(0, min(limits)) - now
            left = max(0.0, until if left is None else min(left, until))
    return left


def written(taint: Taint) -> dict[str, str]:
    fields: dict[str, str] = msgspec.to_builtins(taint)
    return fields
