"""The arithmetic of a StatefulSet: which ordinal is made, remade or removed next. Pure.

With `OrderedReady` at most one pod changes at a time, and only when all below it are well;
with `Parallel` nobody waits for anybody, but updates still go one by one from the top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.cluster.controllers.objects import StatefulSet, StatefulSetStatus
from kvestigate.cluster.controllers.pods import (
    is_available,
    is_leaving,
    is_ready,
    next_available,
)
from kvestigate.cluster.controllers.workloads.revisions import HASH
from kvestigate.cluster.controllers.workloads.rollout import scaled
from kvestigate.kube.views.pods import Pod


@dataclass(frozen=True, slots=True)
class Revisions:
    """Names of the revision that the pods come from and of the one they go to."""

    current: str
    update: str


@dataclass(frozen=True, slots=True)
class Decision:
    status: StatefulSetStatus
    create: tuple[tuple[int, str], ...] = ()
    """Ordinals, each with the name of its revision."""
    delete: tuple[Pod, ...] = ()
    condemned: tuple[Pod, ...] = ()
    """The pods to delete whose ordinal is beyond the wanted replicas."""
    pause: float | None = None


def ordinal_of(stateful_set: StatefulSet, pod: Pod) -> int | None:
    """3 for `web-3` of the set `web`."""
    parent, _, number = pod.metadata.name.rpartition("-")
    return int(number) if parent == stateful_set.metadata.name and number.isdecimal() else None


def decide(
    stateful_set: StatefulSet, pods: Sequence[Pod], revisions: Revisions, now: float
) -> Decision:
    spec = stateful_set.spec
    first = spec.ordinals.start
    wanted = range(first, first + spec.replicas)
    by_ordinal = {
        ordinal: pod for pod in pods if (ordinal := ordinal_of(stateful_set, pod)) is not None
    }
    pause = next_available(by_ordinal.values(), spec.min_ready_seconds, now)
    if stateful_set.metadata.deletion_timestamp is not None:
        return Decision(_status(stateful_set, by_ordinal, (), revisions, now))
    create, delete, settled = _fill(stateful_set, by_ordinal, wanted, revisions, now)
    condemned: list[Pod] = []
    ordered = spec.pod_management_policy != "Parallel"
    if settled or not ordered:
        condemned, calm = _shrink(by_ordinal, wanted, ordered)
        if settled and calm and not condemned and not create:
            delete += _update(stateful_set, by_ordinal, wanted, revisions, now)
    doomed = (*delete, *condemned)
    status = _status(stateful_set, by_ordinal, doomed, revisions, now)
    return Decision(status, tuple(create), doomed, tuple(condemned), pause)


def _fill(
    stateful_set: StatefulSet,
    pods: dict[int, Pod],
    wanted: range,
    revisions: Revisions,
    now: float,
) -> tuple[list[tuple[int, str]], list[Pod], bool]:
    """Pods to create, finished ones to remove, and whether all wanted ones are well."""
    ordered = stateful_set.spec.pod_management_policy != "Parallel"
    create: list[tuple[int, str]] = []
    delete: list[Pod] = []
    settled = True
    for ordinal in wanted:
        pod = pods.get(ordinal)
        if pod is not None and _is_well(stateful_set, pod, now):
            continue
        settled = False
        if pod is None:
            create.append((ordinal, _revision_for(stateful_set, ordinal, revisions)))
        elif pod.finished and not is_leaving(pod):
            delete.append(pod)
        if ordered:
            break
    return create, delete, settled or not ordered


def _is_well(stateful_set: StatefulSet, pod: Pod, now: float) -> bool:
    if is_leaving(pod) or pod.finished:
        return False
    return is_available(pod, stateful_set.spec.min_ready_seconds, now)


def _shrink(pods: dict[int, Pod], wanted: range, ordered: bool) -> tuple[list[Pod], bool]:
    """Pods beyond the wanted ones, from the top; and whether none is on its way out."""
    extra = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in wanted]
    if not ordered:
        staying = [pod for pod in extra if not is_leaving(pod)]
        return staying, not extra
    for pod in extra:
        if is_leaving(pod):
            return [], False
        return [pod], False
    return [], True


def _update(
    stateful_set: StatefulSet,
    pods: dict[int, Pod],
    wanted: range,
    revisions: Revisions,
    now: float,
) -> list[Pod]:
    """Old pods that may go now: from the top, as many at once as may be unavailable."""
    strategy = stateful_set.spec.update_strategy
    if strategy.type == "OnDelete":
        return []
    update = strategy.rolling_update
    budget = max(1, scaled(update.max_unavailable or 1, len(wanted), up=False))
    lowest = wanted.start + update.partition
    doomed: list[Pod] = []
    unwell = sum(
        not _is_well(stateful_set, pods[number], now) for number in wanted if number in pods
    )
    for ordinal in reversed(wanted):
        if ordinal < lowest:
            break
        pod = pods.get(ordinal)
        if pod is None or is_leaving(pod):
            continue
        well = _is_well(stateful_set, pod, now)
        if pod.metadata.labels.get(HASH) != revisions.update:
            if well and unwell + len(doomed) >= budget:
                break
            doomed.append(pod)
            unwell -= not well
        if len(doomed) >= budget:
            break
    return doomed


def _revision_for(stateful_set: StatefulSet, ordinal: int, revisions: Revisions) -> str:
    if revisions.current == revisions.update:
        return revisions.update
    spec = stateful_set.spec
    first = spec.ordinals.start
    partition = spec.update_strategy.rolling_update.partition
    if spec.update_strategy.type == "OnDelete":
        return revisions.update
    if partition:
        return revisions.current if ordinal < first + partition else revisions.update
    below = first + stateful_set.status.current_replicas
    return revisions.current if ordinal < below else revisions.update


def _status(
    stateful_set: StatefulSet,
    pods: dict[int, Pod],
    doomed: Sequence[Pod],
    revisions: Revisions,
    now: float,
) -> StatefulSetStatus:
    """Pods about to be deleted do not count, as the revision of their successors depends on it."""
    spec = stateful_set.spec
    created = list(pods.values())
    living = [pod for pod in created if not is_leaving(pod) and pod not in doomed]
    current = sum(pod.metadata.labels.get(HASH) == revisions.current for pod in living)
    updated = sum(pod.metadata.labels.get(HASH) == revisions.update for pod in living)
    ready = sum(is_ready(pod) for pod in created)
    done = updated == ready == len(created) == spec.replicas
    return StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=len(created),
        ready_replicas=ready,
        current_replicas=updated if done else current,
        updated_replicas=updated,
        available_replicas=sum(is_available(pod, spec.min_ready_seconds, now) for pod in created),
        current_revision=revisions.update if done else revisions.current,
        update_revision=revisions.update,
        collision_count=stateful_set.status.collision_count or 0,
        conditions=stateful_set.status.conditions,
    )
