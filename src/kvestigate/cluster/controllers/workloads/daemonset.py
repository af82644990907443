"""DaemonSets: one pod on every node that fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from kvestigate.client.cache import Change, Key, key_of
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context, slow_start
from kvestigate.cluster.controllers.kinds import DAEMON_SETS, NODES, REVISIONS
from kvestigate.cluster.controllers.objects import DaemonSet, DaemonSetStatus
from kvestigate.cluster.controllers.pods import (
    by_age,
    is_available,
    is_leaving,
    is_ready,
    next_available,
)
from kvestigate.cluster.controllers.reconciler import PodOwner
from kvestigate.cluster.controllers.templates import pod_from
from kvestigate.cluster.controllers.workloads import revisions
from kvestigate.cluster.controllers.workloads.revisions import HASH, record
from kvestigate.cluster.controllers.workloads.rollout import scaled
from kvestigate.kube import eligibility
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod, PodSpec

DAEMON_TOLERATIONS: tuple[tuple[str, str], ...] = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""What a daemon lives with: it is there to mend such nodes."""
_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")
BURST = 250


@dataclass(frozen=True, slots=True)
class Decision:
    status: DaemonSetStatus
    create: tuple[str, ...] = ()
    """Names of nodes."""
    delete: tuple[Pod, ...] = ()
    pause: float | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a DaemonSet starts a pod on a node, and keeps one there."""

    starts: bool
    """A pod is wanted there."""
    stays: bool
    """A pod that is there may stay."""


def fit(spec: PodSpec, node: Node) -> Fit:
    """`spec` is the template's, with the tolerations of daemons."""
    if not eligibility.matches_node(spec, node):
        return Fit(False, False)
    taints = node.spec.taints
    stays = not eligibility.untolerated(spec.tolerations, taints, ["NoExecute"])
    starts = stays and not eligibility.untolerated(spec.tolerations, taints, ["NoSchedule"])
    return Fit(starts, stays)


def decide(
    daemon_set: DaemonSet, nodes: Sequence[Node], pods: Sequence[Pod], revision: str, now: float
) -> Decision:
    spec = template_spec(daemon_set)
    fits = {node.metadata.name: fit(spec, node) for node in nodes}
    on_node: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=by_age):
        on_node.setdefault(node_of(pod), []).append(pod)
    status = _status(daemon_set, fits, on_node, revision, now)
    if daemon_set.metadata.deletion_timestamp is not None:
        return Decision(status)
    create, delete = _presence(fits, on_node)
    if not delete and daemon_set.spec.update_strategy.type != "OnDelete":
        more, delete = _update(daemon_set, fits, on_node, revision, now)
        create += more
    pause = next_available(pods, daemon_set.spec.min_ready_seconds, now)
    return Decision(status, tuple(create[:BURST]), tuple(delete[:BURST]), pause)


def template_spec(daemon_set: DaemonSet) -> PodSpec:
    spec = daemon_set.spec.template.get("spec") or {}
    whole = {**spec, "tolerations": daemon_tolerations(spec)}
    return msgspec.convert(whole, PodSpec)


def _presence(
    fits: Mapping[str, Fit], on_node: Mapping[str, list[Pod]]
) -> tuple[list[str], list[Pod]]:
    """Nodes that lack a pod; pods that are out of place, finished or one too many."""
    create, delete = [], []
    for name, wanted in fits.items():
        living = []
        for pod in on_node.get(name, ()):
            if is_leaving(pod):
                continue
            if pod.finished or not wanted.stays:
                delete.append(pod)
            else:
                living.append(pod)
        if wanted.starts and not on_node.get(name):
            create.append(name)
        delete += _twins(living)
    for name, strays in on_node.items():
        if name not in fits:
            delete += [pod for pod in strays if not is_leaving(pod)]
    return create, delete


def _twins(living: Sequence[Pod]) -> Sequence[Pod]:
    """Of several pods from one revision on a node the oldest stays."""
    seen: set[str] = set()
    extra = []
    for pod in living:
        label = pod.metadata.labels.get(HASH, "")
        if label in seen:
            extra.append(pod)
        seen.add(label)
    return extra


def _update(
    daemon_set: DaemonSet,
    fits: Mapping[str, Fit],
    on_node: Mapping[str, list[Pod]],
    revision: str,
    now: float,
) -> tuple[list[str], list[Pod]]:
    """Old pods that may go, and nodes that may have a new one beside the old."""
    rolling = daemon_set.spec.update_strategy.rolling_update
    names = [name for name, fit in fits.items() if fit.starts]
    surge = scaled(rolling.max_surge, len(names), up=True)
    default = 0 if surge else 1
    unavailable = scaled(rolling.max_unavailable, len(names), up=True) or default
    budget, room = unavailable, surge
    create: list[str] = []
    sick: list[Pod] = []
    well: list[Pod] = []
    for name in names:
        present = [pod for pod in on_node.get(name, ()) if not is_leaving(pod)]
        old = [pod for pod in present if pod.metadata.labels.get(HASH) != revision]
        new = [pod for pod in present if pod.metadata.labels.get(HASH) == revision]
        ready = [pod for pod in present if _is_available(daemon_set, pod, now)]
        if not ready:
            budget -= 1
            sick += old
        elif old and any(pod in ready for pod in new):
            sick += old  # its successor is there
        elif old and new:
            room -= 1
        elif old:
            well += old
            if surge and room > 0:
                create.append(name)
                room -= 1
    if surge:
        return create, [*sick, *well[: max(0, budget)]] if unavailable else sick
    return [], [*sick, *well[: max(0, budget)]]


def _is_available(daemon_set: DaemonSet, pod: Pod, now: float) -> bool:
    return is_available(pod, daemon_set.spec.min_ready_seconds, now)


def _status(
    daemon_set: DaemonSet,
    fits: Mapping[str, Fit],
    on_node: Mapping[str, list[Pod]],
    revision: str,
    now: float,
) -> DaemonSetStatus:
    desired = [name for name, fit in fits.items() if fit.starts]
    current = ready = available = updated = 0
    for name in desired:
        pods = on_node.get(name, ())
        current += bool(pods)
        ready += any(map(is_ready, pods))
        available += any(_is_available(daemon_set, pod, now) for pod in pods)
        updated += any(pod.metadata.labels.get(HASH) == revision for pod in pods)
    misplaced = sum(bool(on_node.get(name)) for name, fit in fits.items() if not fit.starts)
    return DaemonSetStatus(
        current_number_scheduled=current,
        number_misscheduled=misplaced,
        desired_number_scheduled=len(desired),
        number_ready=ready,
        observed_generation=daemon_set.metadata.generation,
        updated_number_scheduled=updated,
        number_available=available,
        number_unavailable=len(desired) - available,
        collision_count=daemon_set.status.collision_count,
        conditions=daemon_set.status.conditions,
    )


def pod_of(daemon_set: DaemonSet, node: str, revision: str) -> dict[str, Any]:
    pod = pod_from(daemon_set.spec.template, DAEMON_SETS, daemon_set)
    pod["metadata"]["labels"][HASH] = revision
    pod["spec"] = pinned(pod["spec"], node)
    return pod


def daemon_tolerations(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """A template's tolerations with those that every daemon has."""
    wanted = [*DAEMON_TOLERATIONS, *([_HOST_NETWORK] if spec.get("hostNetwork") else [])]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    own = [toleration for toleration in spec.get("tolerations") or [] if toleration not in added]
    return [*own, *added]


def pinned(spec: dict[str, Any], node: str) -> dict[str, Any]:
    """A pod spec that the scheduler can only put on one node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = dict(spec.get("affinity") or {})
    towards = dict(affinity.get("nodeAffinity") or {})
    terms = (towards.get(required) or {}).get("nodeSelectorTerms") or [{}]
    towards[required] = {"nodeSelectorTerms": [{**term, "matchFields": [field]} for term in terms]}
    affinity["nodeAffinity"] = towards
    return {**spec, "affinity": affinity, "tolerations": daemon_tolerations(spec)}


def node_of(pod: Pod) -> str:
    """The node a daemon's pod is on, or is bound for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    for term in terms:
        for field in term.match_fields:
            if field.key == "metadata.name" and len(field.values) == 1:
                return field.values[0]
    return ""


class DaemonSetController(PodOwner[DaemonSet]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, DAEMON_SETS)
        self._revisions = context.cache(REVISIONS)
        self._nodes = context.watch(NODES, self._all_sets)

    def _all_sets(self, change: Change[Node]) -> Iterable[Key]:
        """A node that was added, removed or relevantly changed concerns every DaemonSet."""
        old, new = change.old, change.new
        if old is not None and new is not None:
            same = old.metadata.labels == new.metadata.labels
            if same and old.spec.taints == new.spec.taints:
                return
        for daemon_set in self._objects:
            yield key_of(daemon_set)

    async def _reconcile(self, daemon_set: DaemonSet) -> float | None:
        pods = await self._claim(daemon_set)
        history = revisions.history_of(
            DAEMON_SETS,
            daemon_set,
            daemon_set.spec.template,
            daemon_set.spec.selector.get("matchLabels") or {},
            self._revisions.find(owners.OWNER, daemon_set.metadata.uid),
            daemon_set.status.collision_count,
        )
        await record(self._context, history)
        revision = history.name.removeprefix(f"{daemon_set.metadata.name}-")
        nodes = list(self._nodes)
        decision = decide(daemon_set, nodes, pods, revision, self._context.now())
        for pod in decision.delete:
            await self._delete_pod(daemon_set, pod)
        create = partial(self._create_pod, daemon_set)
        bodies = [pod_of(daemon_set, node, revision) for node in decision.create]
        await slow_start([partial(create, body) for body in bodies])
        await self._put_status(daemon_set, decision.status)
        prefix = f"{daemon_set.metadata.name}-"
        live = {prefix + pod.metadata.labels.get(HASH, "") for pod in pods}
        limit = daemon_set.spec.revision_history_limit
        for past in revisions.to_forget(history.others, live, limit):
            await self._context.delete(REVISIONS, past)
        return decision.pause
