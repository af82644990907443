"""Which moves of a plan can be made in a cluster as it is now, and in which wave. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from kvestigate.kube.eligibility import matches_node, untolerated
from kvestigate.kube.requests import PODS, Amounts, requests_of
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.nodeops.evict import UNASKED
from kvestigate.nodeops.pods import choose
from kvestigate.optimize.consolidation import Move
from kvestigate.snapshot.capacity import is_ready

KEPT = "kept"
"""The outcome of a move that is not tried."""


@dataclass(frozen=True, slots=True)
class Step:
    """One move, and what became of it."""

    namespace: str
    pod: str
    gpus: int
    donor: str
    target: str
    wave: int
    """From 1; 0 of a pod that is kept."""
    outcome: str
    """Of an eviction, or `kept`."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A target, and what is free on it once the moves before are made."""

    node: Node
    room: Amounts


def steps(
    found: Sequence[tuple[Move, Pod | None]], places: Mapping[str, Place], wave_size: int
) -> Iterator[Step]:
    """For each move in turn, with the pod that is there now; `places` fill up on the way."""
    going = 0
    for move, pod in found:
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


def obstacle(move: Move, pod: Pod | None, place: Place | None) -> str:
    """Why a move is not made; empty if it is."""
    if pod is None:
        return f"it is not on {move.donor} any more"
    protected = choose([pod]).skip
    if protected:
        return protected[0].reason
    if not any(owner.controller for owner in pod.metadata.owner_references):
        return "nothing would start it again"
    if place is None:
        return f"{move.target} is not there any more"
    target = place.node
    if target.spec.unschedulable or not is_ready(target):
        return f"{move.target} takes no new pods now"
    if not matches_node(structs.replace(pod.spec, node_name=""), target):
        return f"its node selector or affinity does not let it onto {move.target}"
    taints = untolerated(pod.spec.tolerations, target.spec.taints, ("NoSchedule", "NoExecute"))
    if taints:
        return f"it does not tolerate {taints[0].key} of {move.target}"
    short = [name for name, amount in _need(pod).items() if amount > place.room.get(name, 0)]
    return f"{move.target} is short of {', '.join(short)}" if short else ""


def _need(pod: Pod) -> Amounts:
    return {name: amount for name, amount in {**requests_of(pod.spec), PODS: 1}.items() if amount}
