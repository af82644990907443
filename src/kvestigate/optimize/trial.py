"""Moves of pods, tried on a copy of the cluster before anything is done. Pure.

Whether a move is possible is decided here once, for `optimize plan --live`, for `optimize apply`
and for its checks before each wave: by the filters of the scheduler, the rules of the eviction API
and the controllers that recreate pods. What cannot be known is not promised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvestigate.kube.eligibility import tolerates
from kvestigate.kube.feasibility.filters import first_rejection, judges_of, verdicts
from kvestigate.kube.feasibility.framework import Judge, Rejection
from kvestigate.kube.feasibility.pods import PodFacts, replacement
from kvestigate.kube.requests import requests_of
from kvestigate.kube.unschedulable import about_node
from kvestigate.kube.views.core import Taint
from kvestigate.kube.views.pods import Pod
from kvestigate.nodeops.fates import (
    DELETE_DATA,
    Allowed,
    Verdict,
    allowance,
    budget_obstacles,
    controller_of,
    fate_of,
    guards,
    recreation,
)
from kvestigate.snapshot.gpus import vendor_of
from kvestigate.snapshot.scheduling import CLAIMS, CLASSES, NAMESPACES, VOLUMES, Situation

_CORDONED = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
_DEFAULT_SCHEDULER = ("", "default-scheduler")


def immobile(pod: Pod, situation: Situation, *, data: bool, begun: bool = False) -> str:
    """Why a pod cannot be moved, wherever to; empty if it can. `data`: emptyDir data may go.

    `begun`: pods of the plan have moved already. Their budgets allow no eviction until the new
    pods are ready, so this is waited for and not a reason to stop.
    """
    fate = fate_of(pod, situation, Allowed(data=data))
    if fate.verdict is not Verdict.EVICT:
        return f"{fate.reason}; add {fate.flag}" if fate.flag == DELETE_DATA else fate.reason
    again = recreation(pod, situation)
    if not again.certain:
        return again.why
    if reason := _unpredictable(pod, situation):
        return reason
    held = {} if begun else budget_obstacles([pod], situation)
    return held.get(pod.metadata.uid, "")


def _unpredictable(pod: Pod, situation: Situation) -> str:
    """Why it is unknown on which node the pod would start again."""
    spec = pod.spec
    if spec.scheduler_name not in _DEFAULT_SCHEDULER:
        return f"scheduler {spec.scheduler_name} places it, whose rules are unknown"
    if spec.resource_claims:
        return "it uses ResourceClaims, and which devices a new claim would get is unknown"
    if any(volume.ephemeral is not None for volume in spec.volumes):
        return "it uses an ephemeral volume, and where a new one can be made is unknown"
    if any(tolerates(toleration, _CORDONED) for toleration in spec.tolerations):
        return "it tolerates cordoned nodes and could come back to its node"
    if any(each.node_taints_policy == "Honor" for each in spec.topology_spread_constraints):
        return "its topology spread counts only nodes without taints, and a cordon is one"
    needed = [CLAIMS, VOLUMES, CLASSES] if _has_claims(pod) else []
    needed += [NAMESPACES] if spec.affinity is not None else []
    for resource in needed:
        if resource in situation.unread:
            return f"where it fits is unknown: listing {resource} failed"
    return ""


def _has_claims(pod: Pod) -> bool:
    return any(volume.persistent_volume_claim is not None for volume in pod.spec.volumes)


class Trial:
    """A copy of the cluster in which pods move."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self._state = situation.state()
        self._pods = {
            (pod.metadata.namespace, pod.metadata.name): pod
            for pod in situation.pods
            if pod.spec.node_name and not pod.finished
        }
        self._moved: list[tuple[PodFacts, str, PodFacts]] = []
        self._pending = _pending(situation)
        self._possible = {pod.uid: self._fitting(pod) for pod in self._pending}
        """Pending pod -> nodes on which it fits already."""

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self._pods.get((namespace, name))

    def rejections(self, pod: Pod, nodes: Iterable[str]) -> dict[str, str]:
        """Node -> why the pod could not start again there; empty where it could."""
        uid = pod.metadata.uid
        facts, where = self._state.pod(uid), self._state.node_of(uid)
        self._state.take_away(uid)
        judges = judges_of(replacement(pod), self._state)
        rivals = self._rivals(uid, where or "")
        found = {}
        for name in nodes:
            rejection = self._rejection(judges, name)
            found[name] = rejection or rivals.get(name, "") or rivals.get("", "")
        if facts is not None and where is not None:
            self._state.place(facts, where)
        return found

    def _rejection(self, judges: list[Judge] | Rejection, name: str) -> str:
        node = self._state.nodes.get(name)
        if node is None:
            return f"node {name} does not exist"
        rejection = judges if isinstance(judges, Rejection) else first_rejection(judges, node)
        return "" if rejection is None else f"{name} {_words(rejection)}"

    def _rivals(self, uid: str, where: str) -> dict[str, str]:
        """Node -> the pending pod that would start there first, once a pod is gone.

        The node is empty for a pending pod that starts elsewhere only because the pod is gone: it
        would change what the scheduler decides about the new pod.
        """
        rivals: dict[str, str] = {}
        donors = {where, *(donor for _, donor, _ in self._moved)}  # they are cordoned
        for pending in self._pending:
            if pending.uid == uid:
                continue
            fitting = self._fitting(pending)
            if not _ignores_cordons(pending):
                fitting -= donors
            words = f"pending pod {pending.key} would start first"
            rivals |= dict.fromkeys(fitting, words)
            if fitting - self._possible[pending.uid]:
                rivals[""] = words
        return rivals

    def _fitting(self, pod: PodFacts) -> set[str]:
        return {name for name, rejection in verdicts(pod, self._state).items() if not rejection}

    def move(self, pod: Pod, target: str) -> None:
        facts = self._state.pod(pod.metadata.uid)
        assert facts is not None, "only pods that are on a node move"
        again = replacement(pod)
        where = self._state.node_of(facts.uid) or ""
        self._state.take_away(facts.uid)
        self._state.place(again, target)
        self._moved.append((facts, where, again))

    @property
    def mark(self) -> int:
        """Where `undo` goes back to."""
        return len(self._moved)

    def undo(self, mark: int) -> None:
        while len(self._moved) > mark:
            facts, where, again = self._moved.pop()
            self._state.take_away(again.uid)
            self._state.place(facts, where)

    def others_that_fit(self, pods: Sequence[Pod], target: str) -> list[str]:
        """Nodes other than the target on which one of the pods could start again."""
        names = [name for name in self._state.nodes if name != target]
        fitting: set[str] = set()
        for pod in pods:
            fitting |= {name for name, why in self.rejections(pod, names).items() if not why}
        return sorted(fitting)

    def together(self, pods: Sequence[Pod], target: str) -> bool:
        """Whether pods can move to the target at the same time, whoever comes first."""
        if any(self._spends_too_much(pods)):
            return False
        mark = self.mark
        for last in pods:
            if self.rejections(last, [target])[target]:
                return False
            for pod in pods:
                if pod is not last:
                    self.move(pod, target)
            fits = not self.rejections(last, [target])[target]
            self.undo(mark)
            if not fits:
                return False
        return True

    def _spends_too_much(self, pods: Sequence[Pod]) -> Iterable[bool]:
        for budget in self.situation.budgets:
            yield sum(guards(budget, pod) for pod in pods) > max(allowance(budget), 1)


def gpu_pods_on(node: str, situation: Situation) -> list[Pod]:
    """Pods on the node that hold GPUs."""
    return [
        pod
        for pod in situation.pods
        if pod.spec.node_name == node
        and not pod.finished
        and any(vendor_of(name) and amount for name, amount in requests_of(pod.spec).items())
    ]


def _pending(situation: Situation) -> list[PodFacts]:
    """Pods that the default scheduler would place if they fitted; one of each controller."""
    found: dict[str, PodFacts] = {}
    for pod in situation.pods:
        if pod.spec.node_name or pod.finished or pod.status.nominated_node_name:
            continue
        if pod.spec.scheduling_gates or pod.metadata.deletion_timestamp is not None:
            continue
        if pod.spec.scheduler_name in _DEFAULT_SCHEDULER:
            owner = controller_of(pod)
            same = owner is not None and owner.kind != "DaemonSet"
            found.setdefault(owner.uid if owner and same else pod.metadata.uid, PodFacts(pod))
    return list(found.values())


def _ignores_cordons(pod: PodFacts) -> bool:
    return any(tolerates(toleration, _CORDONED) for toleration in pod.pod.spec.tolerations)


def _words(rejection: Rejection) -> str:
    return ", ".join(about_node(reason) for reason in rejection.reasons)
