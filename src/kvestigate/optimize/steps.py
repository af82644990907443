"""Which moves of a plan are possible now, and in which wave. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from kvestigate.kube.views.pods import Pod
from kvestigate.optimize.consolidation import Move
from kvestigate.optimize.trial import Trial, gpu_pods_on, immobile
from kvestigate.snapshot.scheduling import Situation

KEPT, MOVED = "kept", "moved"
"""Outcomes of a move: it is not possible; the pod was evicted and its replacement has a node."""


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
    """`moved`, `kept`, or the outcome of the eviction."""
    reason: str = ""


def obstacles(
    moves: Sequence[Move], situation: Situation, *, data: bool, begun: bool = False
) -> dict[Move, str]:
    """Moves that are not possible now, with the reason: all of a donor, or none of them.

    The moves are tried in their order, each after the ones before it.
    """
    trial = Trial(situation)
    reasons: dict[Move, str] = {}
    for donor, group in groupby(moves, key=lambda move: move.donor):
        going = list(group)
        mark = trial.mark
        found = {move: reason for move, reason in _tried(going, trial, data, begun) if reason}
        stranger = _stranger(donor, going, situation)
        if found or stranger:
            trial.undo(mark)
            why = stranger or f"{donor} cannot become empty"
            reasons |= {move: found.get(move) or why for move in going}
    return reasons


def _tried(
    moves: Sequence[Move], trial: Trial, data: bool, begun: bool
) -> Iterator[tuple[Move, str]]:
    for move in moves:
        pod = trial.pod(move.namespace, move.pod)
        if pod is None or pod.spec.node_name != move.donor:
            yield move, f"no longer on {move.donor}"
            continue
        reason = immobile(pod, trial.situation, data=data, begun=begun)
        reason = reason or trial.rejections(pod, [move.target])[move.target]
        if not reason:
            trial.move(pod, move.target)
        yield move, reason


def _stranger(donor: str, moves: Sequence[Move], situation: Situation) -> str:
    """The pod with GPUs on the donor that the plan does not move; empty if there is none."""
    known = {(move.namespace, move.pod) for move in moves}
    for pod in gpu_pods_on(donor, situation):
        meta = pod.metadata
        if (meta.namespace, meta.name) not in known and meta.deletion_timestamp is None:
            return f"{meta.namespace}/{meta.name} on {donor} is not part of the plan"
    return ""


def waves(moves: Sequence[Move], situation: Situation, size: int) -> list[list[Move]]:
    """Moves that are possible, in groups that are made at the same time.

    A wave has one donor and one target. Its pods may come in any order, and no budget is asked for
    more than it allows.
    """
    trial = Trial(situation)
    found: list[list[Move]] = []
    for _, group in groupby(moves, key=lambda move: (move.donor, move.target)):
        wave: list[Move] = []
        for move in group:
            if wave and (len(wave) == size or not _together([*wave, move], trial)):
                found.append(wave)
                _make(wave, trial)
                wave = []
            wave.append(move)
        found.append(wave)
        _make(wave, trial)
    return found


def pods_of(moves: Sequence[Move], trial: Trial) -> list[Pod]:
    pods = (trial.pod(move.namespace, move.pod) for move in moves)
    return [pod for pod in pods if pod is not None]


def _together(moves: Sequence[Move], trial: Trial) -> bool:
    return trial.together(pods_of(moves, trial), moves[0].target)


def _make(moves: Sequence[Move], trial: Trial) -> None:
    for move, pod in zip(moves, pods_of(moves, trial), strict=True):
        trial.move(pod, move.target)
