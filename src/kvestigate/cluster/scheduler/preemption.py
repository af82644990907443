"""Which pods to evict so that a pod of higher priority fits. Pure.

A pod that fits nowhere may take the place of pods with a lower priority. The rules are
kube-scheduler's, to the order of comparisons and the words of messages, as users read them in
events and the same cluster must evict the same pods under either scheduler. The tests compare with
recorded decisions of the real one.

On one node: remove all pods of lower priority and ask the filters whether the pod would fit. If it
would not, evictions on this node cannot help. If it would, bring the victims back one by one, those
that a PodDisruptionBudget protects first and the most important first, and keep each that still
leaves room. What cannot come back are the victims. This is greedy: the smallest possible set of
victims would need all combinations, and nobody waits for that.

Across nodes: the node where evictions do least harm, by `_harm`: fewest broken budgets, then the
lowest highest priority, then the lowest sum of priorities, then the fewest victims, then the
victims that started last. Not all nodes are tried: a tenth of them, at least 100, from a random
start, or a large cluster would be simulated whole for every pod that waits.

`ClusterState.supposing` changes the state for the length of a block instead of copying it, as a
copy of all nodes for each of 100 candidates would cost more than the decision.

Eviction takes time: the victims end gracefully. Until then the pod is *nominated* for the node, so
that other pods of the same or lower priority do not take the room; and while victims of an earlier
round are still terminating there, no further ones are chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from kvestigate.cluster.scheduler.decision import Decider, NoFit
from kvestigate.kube.feasibility.devices import ELSEWHERE, NAME, PodClaims, claims_of, is_available
from kvestigate.kube.feasibility.filters import unavailable
from kvestigate.kube.feasibility.framework import Rejection
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.selection import label_selector
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.selectors import LabelSelector
from kvestigate.kube.views.devices import ResourceClaim
from kvestigate.kube.views.policy import PodDisruptionBudget

_NAME = "DefaultPreemption"
_FEWEST, _SHARE = 100, 10
"""How many nodes are tried: this share of them in percent, but at least so many."""
_NO_VICTIMS = Rejection(_NAME, ("No preemption victims found for incoming pod",), False)
_NO_HELP = Rejection(_NAME, ("Preemption is not helpful for scheduling",), False)
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Preemption:
    """The node to make room on, and whom to evict."""

    node: str
    victims: tuple[PodFacts, ...]
    """The most important first."""
    broken_budgets: int
    """Victims that a disruption budget would have protected."""


@dataclass(frozen=True, slots=True)
class NoPreemption:
    """Why evictions would not help, or are not allowed."""

    why: str
    keeps_nomination: bool = False


def preempt(
    pod: PodFacts, refusal: NoFit, state: ClusterState, decider: Decider, random: Random
) -> Preemption | NoPreemption:
    if pod.pod.spec.preemption_policy == "Never":
        return NoPreemption("not eligible due to preemptionPolicy=Never.", True)
    if _under_way(pod, refusal, state):
        why = "not eligible due to a terminating pod on the nominated node."
        return NoPreemption(why, True)
    candidates, rejections = _candidates(pod, refusal.resolvable(), state, decider, random)
    if not candidates:
        why = unavailable(len(state.nodes), None, rejections.values(), _NO_HELP)
        return NoPreemption(why)
    return min(candidates, key=_harm)


def _under_way(pod: PodFacts, refusal: NoFit, state: ClusterState) -> bool:
    """Whether victims of an earlier preemption are still terminating."""
    name = pod.pod.status.nominated_node_name
    node = state.nodes.get(name)
    if node is None:
        return False
    rejection = refusal.everywhere or refusal.nodes.get(name, refusal.elsewhere)
    if rejection is not None and not rejection.resolvable:
        return False
    return any(other.terminating and other.priority < pod.priority for other in node.pods.values())


def _candidates(
    pod: PodFacts, names: list[str], state: ClusterState, decider: Decider, random: Random
) -> tuple[list[Preemption], dict[str, Rejection]]:
    harmless: list[Preemption] = []
    harmful: list[Preemption] = []
    rejections: dict[str, Rejection] = {}
    enough = min(len(names), max(_FEWEST, len(names) * _SHARE // 100))
    start = random.randrange(len(names)) if names else 0
    for name in names[start:] + names[:start]:
        candidate = _on_node(pod, state.nodes[name], state, decider)
        if isinstance(candidate, Rejection):
            rejections[name] = candidate
            continue
        (harmful if candidate.broken_budgets else harmless).append(candidate)
        if harmless and len(harmless) + len(harmful) >= enough:
            break
    return harmless + harmful, rejections


def _on_node(
    pod: PodFacts, node: NodeState, state: ClusterState, decider: Decider
) -> Preemption | Rejection:
    lesser = [other for other in node.pods.values() if other.priority < pod.priority]
    if not lesser:
        return _NO_VICTIMS
    lesser.sort(key=_importance)
    gone = {other.uid: other for other in lesser}
    rejection = _fits_without(gone.values(), pod, node, state, decider)
    if rejection is not None:
        return rejection
    protected, others = _by_protection(lesser, state.budgets.values())
    broken = 0
    # Spare as many as possible: those under a budget first, and the more important ones first.
    for other in (*protected, *others):
        del gone[other.uid]
        if _fits_without(gone.values(), pod, node, state, decider) is not None:
            gone[other.uid] = other
            broken += other in protected
    victims = sorted(gone.values(), key=_importance)
    return Preemption(node.name, tuple(victims), broken)


def _fits_without(
    gone: Iterable[PodFacts],
    pod: PodFacts,
    node: NodeState,
    state: ClusterState,
    decider: Decider,
) -> Rejection | None:
    with state.supposing(node.name, without=gone):
        return decider.fits(pod, node, state)


def _importance(pod: PodFacts) -> tuple[int, datetime, str]:
    return (-pod.priority, pod.pod.status.start_time or _NEVER, pod.uid)


def _harm(preemption: Preemption) -> tuple[int, int, int, int, float]:
    """The sort key of candidates: the least harm first."""
    priorities = [victim.priority for victim in preemption.victims]
    highest = max(priorities)
    began = min(
        (victim.pod.status.start_time or _NEVER).timestamp()
        for victim in preemption.victims
        if victim.priority == highest
    )
    total = sum(priority + 2**31 for priority in priorities)
    return (preemption.broken_budgets, highest, total, len(priorities), -began)


@dataclass(slots=True)
class _Allowance:
    """How many more pods of a budget may go."""

    budget: PodDisruptionBudget
    selector: LabelSelector
    left: int

    def spend(self, pod: PodFacts) -> bool:
        """Count one eviction; whether it breaks the budget."""
        metadata = self.budget.metadata
        if metadata.namespace != pod.key.namespace or self.selector.selects_everything:
            return False
        if not self.selector.matches(pod.labels):
            return False
        if pod.key.name in self.budget.status.disrupted_pods:
            return False  # its eviction has been counted already
        self.left -= 1
        return self.left < 0


def _by_protection(
    pods: list[PodFacts], budgets: Iterable[PodDisruptionBudget]
) -> tuple[list[PodFacts], list[PodFacts]]:
    """Pods whose eviction would break a budget, and the others."""
    allowances = [
        _Allowance(budget, label_selector(budget.spec.selector), budget.status.disruptions_allowed)
        for budget in budgets
    ]
    protected: list[PodFacts] = []
    others: list[PodFacts] = []
    for pod in pods:
        broken = [allowance.spend(pod) for allowance in allowances] if pod.labels else []
        (protected if any(broken) else others).append(pod)
    return protected, others


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a pod that fits nowhere is told, and where room is made for it."""

    message: str
    nominated: str | None
    """The node that is nominated, empty for none; None leaves the nomination unchanged."""
    preemption: Preemption | None = None
    deallocated: ResourceClaim | None = None
    """A claim whose devices are freed, as no node that suits the pod can use them."""
    reason: str = "Unschedulable"


def refuse(
    pod: PodFacts, no_fit: NoFit, state: ClusterState, decider: Decider, random: Random
) -> Refusal:
    """The refusal in kube-scheduler's words."""
    message = str(no_fit)
    if not no_fit.total:
        return Refusal(message, "")
    if no_fit.fatal is not None:
        return Refusal(message, None, reason="SchedulerError")
    if no_fit.everywhere is not None:
        # Evictions cannot help then. What kube-scheduler adds if a plugin before that of devices
        # refused is that it kept no state of devices: of no use, but those who search for its
        # words should find them.
        if no_fit.everywhere.plugin != NAME:
            return Refusal(f"{message} not found", "")
        why = unavailable(no_fit.total, None, (), _NO_HELP)
        return Refusal(f"{message} no new claims to deallocate, preemption: {why}", "")
    outcome = preempt(pod, no_fit, state, decider, random)
    if isinstance(outcome, Preemption):
        return Refusal(message, outcome.node, outcome)
    # The first part is what kube-scheduler's dynamic resources always say here.
    freed = _to_deallocate(pod, no_fit, state)
    devices = (
        "deallocation of ResourceClaim completed"
        if freed is not None
        else "still not schedulable"
        if pod.pod.spec.resource_claims
        else "no new claims to deallocate"
    )
    message += f" {devices}, preemption: {outcome.why}"
    return Refusal(message, None if outcome.keeps_nomination else "", deallocated=freed)


def _to_deallocate(pod: PodFacts, no_fit: NoFit, state: ClusterState) -> ResourceClaim | None:
    """A claim of the pod alone that has devices on nodes which do not suit the pod."""
    claims = claims_of(pod, state) if pod.pod.spec.resource_claims else PodClaims()
    if isinstance(claims, Rejection):
        return None
    nodes = [
        state.nodes[name]
        for name, rejection in no_fit.nodes.items()
        if rejection.reasons == (ELSEWHERE,)
    ]
    for claim in claims.allocated:
        alone = all(each.uid == pod.uid for each in claim.status.reserved_for)
        if alone and any(not is_available(claim, node) for node in nodes):
            return claim
    return None
