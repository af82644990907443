"""The arithmetic of a Deployment: which ReplicaSet gets how many pods next. Pure.

The rules are kube-controller-manager's, because people tune `maxSurge` and `maxUnavailable`
against them: never more than `replicas + maxSurge` pods, never fewer than
`replicas - maxUnavailable` available ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

from kvestigate.cluster.controllers.objects import Deployment, IntOrPercent, ReplicaSet
from kvestigate.cluster.controllers.pods import by_age
from kvestigate.cluster.controllers.templates import same_template

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"

Sizes = dict[str, int]
"""Wanted replicas by ReplicaSet name, of those that have to change."""


@dataclass(frozen=True, slots=True)
class Sets:
    """The ReplicaSets of a Deployment."""

    new: ReplicaSet | None
    """The one with the Deployment's template."""
    old: tuple[ReplicaSet, ...]

    @property
    def all(self) -> tuple[ReplicaSet, ...]:
        return (*self.old, self.new) if self.new else self.old


def sort_out(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> Sets:
    ordered = sorted(replica_sets, key=by_age)
    template = deployment.spec.template
    # Two can match after a hash collision; the oldest is the one that others have seen.
    new = next(
        (
            replica_set
            for replica_set in ordered
            if same_template(replica_set.spec.template, template)
        ),
        None,
    )
    return Sets(new, tuple(replica_set for replica_set in ordered if replica_set is not new))


def scaled(value: IntOrPercent | None, total: int, *, up: bool) -> int:
    """A number, or a percentage of `total`."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    share = int(value.rstrip("%")) * total / 100
    return ceil(share) if up else floor(share)


def surge(deployment: Deployment) -> int:
    return _fenceposts(deployment)[0] if rolls(deployment) else 0


def unavailable(deployment: Deployment) -> int:
    if not rolls(deployment) or not deployment.spec.replicas:
        return 0
    return min(_fenceposts(deployment)[1], deployment.spec.replicas)


def _fenceposts(deployment: Deployment) -> tuple[int, int]:
    update, replicas = deployment.spec.strategy.rolling_update, deployment.spec.replicas
    more = scaled(update.max_surge, replicas, up=True)
    fewer = scaled(update.max_unavailable, replicas, up=False)
    # Rounded percentages can both become 0, which would never make progress.
    return (more, fewer) if more or fewer else (0, 1)


def rolls(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type != "Recreate"


def wanted_by(replica_sets: Sequence[ReplicaSet]) -> int:
    return sum(replica_set.spec.replicas for replica_set in replica_sets)


def available_in(replica_sets: Sequence[ReplicaSet]) -> int:
    return sum(replica_set.status.available_replicas for replica_set in replica_sets)


def new_size(deployment: Deployment, sets: Sets) -> int:
    """How large the new ReplicaSet may be now."""
    wanted = deployment.spec.replicas
    if not rolls(deployment):
        return wanted
    current = sets.new.spec.replicas if sets.new else 0
    if current >= wanted:
        return wanted
    room = wanted + surge(deployment) - wanted_by(sets.all)
    return current + max(0, min(room, wanted - current))


def roll(deployment: Deployment, sets: Sets) -> Sizes:
    """The next step of a rolling update: first up, then down."""
    new = sets.new
    assert new is not None
    size = new_size(deployment, sets)
    if size != new.spec.replicas:
        return {new.metadata.name: size}
    return _shrink_old(deployment, sets, new)


def _shrink_old(deployment: Deployment, sets: Sets, new: ReplicaSet) -> Sizes:
    least = deployment.spec.replicas - unavailable(deployment)
    still_coming = new.spec.replicas - new.status.available_replicas
    spare = wanted_by(sets.all) - least - still_coming
    if spare <= 0 or not wanted_by(sets.old):
        return {}
    sizes = {old_set.metadata.name: old_set.spec.replicas for old_set in sets.old}
    for replica_set in sets.old:  # what does not run anyway goes first
        unhealthy = replica_set.spec.replicas - replica_set.status.available_replicas
        gone = max(0, min(spare, unhealthy))
        sizes[replica_set.metadata.name] -= gone
        spare -= gone
    surplus = available_in(sets.all) - least
    for replica_set in sets.old:
        gone = max(0, min(surplus, sizes[replica_set.metadata.name]))
        sizes[replica_set.metadata.name] -= gone
        surplus -= gone
    return _changed(sets.old, sizes)


def is_rescaled(deployment: Deployment, sets: Sets) -> bool:
    """Whether the Deployment's size changed since its ReplicaSets were sized."""
    return any(
        replica_set.spec.replicas
        and _number(replica_set.metadata.annotations, DESIRED) != deployment.spec.replicas
        for replica_set in sets.all
        if DESIRED in replica_set.metadata.annotations
    )


def rescale(deployment: Deployment, sets: Sets) -> Sizes:
    """Give every ReplicaSet its share of a changed size, in the middle of a roll-out too."""
    active = [replica_set for replica_set in sets.all if replica_set.spec.replicas]
    if len(active) <= 1:
        only = active[0] if active else (sets.new or (sets.old[-1] if sets.old else None))
        return _changed([only], {only.metadata.name: deployment.spec.replicas}) if only else {}
    if sets.new is not None and _is_saturated(deployment, sets.new):
        return _changed(
            sets.old, dict.fromkeys((replica_set.metadata.name for replica_set in sets.old), 0)
        )
    return _proportional(deployment, active) if rolls(deployment) else {}


def _is_saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    wanted = deployment.spec.replicas
    sized = _number(new.metadata.annotations, DESIRED) == wanted
    return new.spec.replicas == wanted and sized and new.status.available_replicas == wanted


def _proportional(deployment: Deployment, active: list[ReplicaSet]) -> Sizes:
    allowed = deployment.spec.replicas + surge(deployment) if deployment.spec.replicas else 0
    to_add = allowed - wanted_by(active)
    if to_add >= 0:  # the largest first, and the newest of equals
        order = sorted(
            sorted(active, key=by_age, reverse=True), key=lambda resized: -resized.spec.replicas
        )
    else:
        order = sorted(sorted(active, key=by_age), key=lambda resized: -resized.spec.replicas)
    sizes, added = {}, 0
    for replica_set in order:
        share = _share(deployment, replica_set)
        left = to_add - added
        share = min(share, left) if to_add > 0 else max(share, left)
        sizes[replica_set.metadata.name] = replica_set.spec.replicas + share
        added += share
    first = order[0].metadata.name
    sizes[first] = max(0, sizes[first] + to_add - added)
    return _changed(active, sizes)


def _share(deployment: Deployment, replica_set: ReplicaSet) -> int:
    replicas = replica_set.spec.replicas
    if not deployment.spec.replicas:
        return -replicas
    total = deployment.spec.replicas + surge(deployment)
    before = _number(replica_set.metadata.annotations, MAXIMUM) or deployment.status.replicas
    return round(replicas * total / before) - replicas if before else 0


def to_forget(deployment: Deployment, sets: Sets) -> list[ReplicaSet]:
    """Old ReplicaSets beyond the history that is to be kept, the oldest first."""
    limit = deployment.spec.revision_history_limit
    kept = [
        replica_set for replica_set in sets.old if replica_set.metadata.deletion_timestamp is None
    ]
    if limit is None or len(kept) <= limit:
        return []
    kept.sort(key=revision_of)
    return [
        replica_set
        for replica_set in kept[: len(kept) - limit]
        if not replica_set.status.replicas
        and not replica_set.spec.replicas
        and replica_set.metadata.generation <= replica_set.status.observed_generation
    ]


def revision_of(replica_set: ReplicaSet) -> int:
    return _number(replica_set.metadata.annotations, REVISION)


def _number(annotations: Mapping[str, str], name: str) -> int:
    text = annotations.get(name, "")
    return int(text) if text.isdecimal() else 0


def _changed(replica_sets: Sequence[ReplicaSet], sizes: Sizes) -> Sizes:
    return {
        replica_set.metadata.name: sizes[replica_set.metadata.name]
        for replica_set in replica_sets
        if sizes[replica_set.metadata.name] != replica_set.spec.replicas
    }
