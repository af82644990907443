"""Which moves of a plan are possible now, and in which wave. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from kvestigate.kube.eligibility import matches_node, untolerated
from kvestigate.kube.requests import PODS, Amounts, requests_of
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.nodeops.evict import UNASKED
from kvestigate.nodeops.selection import choose
from kvestigate.optimize.consolidation import Move
from kvestigate.snapshot.capacity import is_ready

KEPT = "kept"
"""The outcome of a move that is not possible."""


@dataclass(frozen=True, slots=True)
class Step:
    """One move and its outcome."""

    namespace: str
    pod: str
    gpus: int
    donor: str
    target: str
    wave: int
    """From 1; 0 for a pod that is kept."""
    outcome: str
    """The outcome of the eviction, or `kept`."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TargetRoom:
    """A target node, and what is free on it after the moves before this one."""

    node: Node
    room: Amounts


def steps(
    moves: Sequence[tuple[Move, Pod | None]], places: Mapping[str, TargetRoom], wave_size: int
) -> Iterator[Step]:
    """A step for each move; each move takes from the room of its target in `places`."""
    going = 0
    for move, pod in moves:
        place = places.get(move.target)
        reason = obstacle(move, pod, place)
        if pod is not None and place is not None and not reason:
            for name, amount in _need(pod).items():
                place.room[name] = place.room.get(name, 0) - amount
        wave = 0 if reason else going // wave_size + 1
        going += not reason
        yield Step(
            move.namespace,
            move.pod,
            move.gpus,
            move.donor,
            move.target,
            wave,
            KEPT if reason else UNASKED,
            reason,
        )


def obstacle(move: Move, pod: Pod | None, place: TargetRoom | None) -> str:
    """Why a move is not possible; empty if it is."""
    if pod is None:
        return f"no longer on {move.donor}"
    protected = choose([pod]).skip
    if protected:
        return protected[0].reason
    if not any(owner.controller for owner in pod.metadata.owner_references):
        return "no controller would recreate it"
    if place is None:
        return f"node {move.target} no longer exists"
    target = place.node
    if target.spec.unschedulable or not is_ready(target):
        return f"node {move.target} is not schedulable"
    if not matches_node(structs.replace(pod.spec, node_name=""), target):
        return f"node selector or affinity does not match {move.target}"
    taints = untolerated(pod.spec.tolerations, target.spec.taints, ("NoSchedule", "NoExecute"))
    if taints:
        return f"taint {taints[0].key} of {move.target} is not tolerated"
    short = [name for name, amount in _need(pod).items() if amount > place.room.get(name, 0)]
    return f"insufficient {', '.join(short)} on {move.target}" if short else ""


def _need(pod: Pod) -> Amounts:
    return {name: amount for name, amount in {**requests_of(pod.spec), PODS: 1}.items() if amount}
