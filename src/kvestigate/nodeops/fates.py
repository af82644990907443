"""What becomes of each pod when it is evicted. Pure.

The rules are kubectl's: DaemonSet and static pods stay, pods that nothing recreates and pods with
data in an emptyDir are refused unless a flag says otherwise. Beyond that, each fate says who
recreates the pod, which budget blocks its eviction now, and whether another node fits.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from kvestigate.kube.feasibility.filters import unavailable, verdicts
from kvestigate.kube.feasibility.pods import replacement
from kvestigate.kube.feasibility.selection import label_selector
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.unschedulable import in_plain_words
from kvestigate.kube.views.meta import OwnerReference
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.render.human import counted
from kvestigate.snapshot.scheduling import BUDGETS, CONTROLLERS, NODES, PODS, Situation, Workload

SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
FORCE, DELETE_DATA = "--force", "--delete-emptydir-data"
_MIRROR = "kubernetes.io/config.mirror"
_DEFAULT_SCHEDULER = "default-scheduler"


class Verdict(enum.Enum):
    EVICT = "evict"
    STAY = "stay"
    """The pod is left alone."""
    REFUSE = "refuse"
    """Nothing is evicted unless a flag allows it for this pod."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which pods may be evicted, by the flags of the command."""

    system: bool = False
    """Pods of system namespaces."""
    uncontrolled: bool = False
    """Pods that no controller recreates."""
    data: bool = False
    """Pods whose emptyDir volumes lose their data."""


@dataclass(frozen=True, slots=True)
class Recreation:
    """Whether a controller creates a new pod when this one is gone."""

    by: str = ""
    """`Deployment web`; empty without a controller."""
    certain: bool | None = False
    """None: unknown."""
    why: str = ""
    """Why not, or why it is unknown."""


@dataclass(frozen=True, slots=True)
class Fate:
    pod: Pod
    verdict: Verdict
    reason: str
    flag: str = ""
    """The flag that allows the eviction of a refused pod."""
    blocked: str = ""
    """The budget that blocks the eviction now; empty if none does."""


def fates(
    pods: Sequence[Pod], situation: Situation, allowed: Allowed, closed: str = ""
) -> tuple[Fate, ...]:
    """The fate of each of these pods, which are evicted together; node `closed` is cordoned."""
    plain = [fate_of(pod, situation, allowed) for pod in pods]
    going = [fate.pod for fate in plain if fate.verdict is Verdict.EVICT]
    homes = new_homes(going, situation, closed)
    budgets = budget_obstacles(going, situation)
    return tuple(
        fate
        if fate.verdict is not Verdict.EVICT
        else Fate(
            fate.pod,
            fate.verdict,
            "; ".join(filter(None, (fate.reason, homes.get(fate.pod.metadata.uid, "")))),
            blocked=budgets.get(fate.pod.metadata.uid, ""),
        )
        for fate in plain
    )


def fate_of(pod: Pod, situation: Situation, allowed: Allowed) -> Fate:
    """Without other pods in mind: no budgets, and no word on where it fits."""
    if reason := protection(pod, situation, allowed):
        return Fate(pod, Verdict.STAY, reason)
    again = recreation(pod, situation)
    lost = not again.by or (again.certain is False and _gone(pod, situation))
    if lost and not allowed.uncontrolled:
        return Fate(pod, Verdict.REFUSE, f"{again.why}: it would be gone for good", FORCE)
    scratch = [volume.name for volume in pod.spec.volumes if volume.empty_dir is not None]
    if scratch and not allowed.data:
        names = ", ".join(scratch)
        word = "volume" if len(scratch) == 1 else "volumes"
        return Fate(
            pod, Verdict.REFUSE, f"the data of its emptyDir {word} {names} is lost", DELETE_DATA
        )
    if again.certain:
        return Fate(pod, Verdict.EVICT, f"{again.by} recreates it")
    return Fate(pod, Verdict.EVICT, again.why if lost else f"evicted; {again.why}")


def protection(pod: Pod, situation: Situation, allowed: Allowed) -> str:
    """Why a pod stays; empty if it is evicted or refused."""
    meta = pod.metadata
    owner = controller_of(pod)
    if _MIRROR in meta.annotations:
        return "static pod: only its node can end it"
    if meta.deletion_timestamp is not None:
        return "already terminating"
    if pod.finished:
        return "completed: nothing runs any more"
    if owner is not None and owner.kind == "DaemonSet" and not _gone(pod, situation):
        return f"DaemonSet {owner.name} runs a pod on every node that fits"
    if meta.namespace in SYSTEM and not allowed.system:
        return "in a system namespace; --include-system evicts it, too"
    return ""


def controller_of(pod: Pod) -> OwnerReference | None:
    return next((owner for owner in pod.metadata.owner_references if owner.controller), None)


def _gone(pod: Pod, situation: Situation) -> bool:
    """Whether the pod's controller is known not to exist any more, or is being deleted."""
    owner = controller_of(pod)
    if owner is None or owner.kind not in CONTROLLERS:
        return owner is None
    if CONTROLLERS[owner.kind] in situation.unread:
        return False
    workload = situation.controllers.get(owner.uid)
    return workload is None or workload.metadata.deletion_timestamp is not None


def recreation(pod: Pod, situation: Situation) -> Recreation:
    owner = controller_of(pod)
    if owner is None:
        return Recreation(why="no controller recreates it")
    name = f"{owner.kind} {owner.name}"
    if owner.kind not in CONTROLLERS:
        return Recreation(name, None, f"whether {name} recreates it is unknown")
    if CONTROLLERS[owner.kind] in situation.unread:
        return Recreation(
            name,
            None,
            f"whether {name} exists is unknown: listing {CONTROLLERS[owner.kind]} failed",
        )
    workload = situation.controllers.get(owner.uid)
    if workload is None:
        return Recreation(name, False, f"{name} does not exist any more")
    name = _shown(owner, workload)
    if workload.metadata.deletion_timestamp is not None:
        return Recreation(name, False, f"{name} is being deleted")
    certain, why = _RULES[owner.kind](pod, workload, situation)
    return Recreation(name, certain, f"{name} {why}" if why else "")


def _shown(owner: OwnerReference, workload: Workload) -> str:
    """The workload that people know: the Deployment of a ReplicaSet."""
    for above in workload.metadata.owner_references:
        if above.controller:
            return f"{above.kind} {above.name}"
    return f"{owner.kind} {owner.name}"


_Rule = Callable[[Pod, Workload, Situation], tuple[bool | None, str]]


def _replicas(pod: Pod, workload: Workload, situation: Situation) -> tuple[bool | None, str]:
    if situation.running.get(workload.metadata.uid, 0) > workload.spec.replicas:
        return False, "has more pods than it wants and does not recreate it"
    return True, ""


def _ordinals(pod: Pod, workload: Workload, situation: Situation) -> tuple[bool | None, str]:
    if situation.running.get(workload.metadata.uid, 0) > workload.spec.replicas:
        return False, "has more pods than it wants and does not recreate it"
    revision = pod.metadata.labels.get("controller-revision-hash", "")
    newest = workload.status.update_revision
    if newest and revision and newest != revision:
        return None, "recreates it from a newer template, whose needs may differ"
    return True, ""


def _daemons(pod: Pod, workload: Workload, situation: Situation) -> tuple[bool | None, str]:
    return True, ""


def _job(pod: Pod, workload: Workload, situation: Situation) -> tuple[bool | None, str]:
    spec, status = workload.spec, workload.status
    if spec.suspend:
        return False, "is suspended and does not recreate it"
    forgiven = any(
        rule.action == "Ignore"
        and any(condition.type == "DisruptionTarget" for condition in rule.on_pod_conditions)
        for rule in spec.pod_failure_policy.rules
    )
    if not forgiven and status.failed >= spec.backoff_limit:
        return False, f"fails: its backoffLimit of {spec.backoff_limit} would be exceeded"
    return True, ""


_RULES: Mapping[str, _Rule] = {
    "ReplicaSet": _replicas,
    "ReplicationController": _replicas,
    "StatefulSet": _ordinals,
    "DaemonSet": _daemons,
    "Job": _job,
}


# -- budgets ---------------------------------------------------------------------------------


def budget_obstacles(pods: Sequence[Pod], situation: Situation) -> dict[str, str]:
    """Pod uid -> why the eviction API refuses it now, or refuses some of these pods at a time."""
    if reason := situation.unread.get(BUDGETS):
        return {pod.metadata.uid: f"budgets are unknown: {reason}" for pod in pods}
    reasons: dict[str, str] = {}
    guarded: dict[str, list[Pod]] = {}
    budgets = {_path(budget): budget for budget in situation.budgets}
    for pod in pods:
        own = [path for path, budget in budgets.items() if guards(budget, pod)]
        if len(own) > 1:
            names = ", ".join(budgets[path].metadata.name for path in own)
            reasons[pod.metadata.uid] = (
                f"PodDisruptionBudgets {names} both select it, and Kubernetes then evicts nothing"
            )
        elif own:
            guarded.setdefault(own[0], []).append(pod)
    for path, members in guarded.items():
        reason = _short_of(budgets[path], len(members))
        reasons |= {pod.metadata.uid: reason for pod in members if reason}
    return reasons


def _path(budget: PodDisruptionBudget) -> str:
    return f"{budget.metadata.namespace}/{budget.metadata.name}"


def guards(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the eviction of the pod counts against the budget."""
    if budget.spec.selector is None or pod.metadata.namespace != budget.metadata.namespace:
        return False
    if not label_selector(budget.spec.selector).matches(pod.metadata.labels):
        return False
    if pod.finished or pod.status.phase == "Pending" or pod.metadata.deletion_timestamp is not None:
        return False
    return not _spares_unready(budget, pod)


def _spares_unready(budget: PodDisruptionBudget, pod: Pod) -> bool:
    conditions = pod.status.conditions
    if any(each.type == "Ready" and each.status == "True" for each in conditions):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return 0 < budget.status.desired_healthy <= budget.status.current_healthy


def allowance(budget: PodDisruptionBudget) -> int:
    """How many pods it lets go now."""
    if budget.status.observed_generation < budget.metadata.generation:
        return 0
    return max(budget.status.disruptions_allowed, 0)


def _short_of(budget: PodDisruptionBudget, wanted: int) -> str:
    allowed, status, name = allowance(budget), budget.status, budget.metadata.name
    if allowed >= wanted:
        return ""
    if budget.status.observed_generation < budget.metadata.generation:
        return f"PodDisruptionBudget {name} is not processed yet"
    if allowed:
        return f"PodDisruptionBudget {name} allows {allowed} of {wanted} evictions at a time"
    return (
        f"PodDisruptionBudget {name} allows none until more than {status.desired_healthy} pods "
        f"are healthy; {status.current_healthy} are"
    )


# -- new homes -------------------------------------------------------------------------------


def new_homes(pods: Sequence[Pod], situation: Situation, closed: str) -> dict[str, str]:
    """Pod uid -> on how many nodes its replacement fits, once all these pods are gone."""
    for resource in (NODES, PODS):
        if resource in situation.unread:
            return dict.fromkeys(
                (pod.metadata.uid for pod in pods),
                f"where it fits is unknown: listing {resource} in all namespaces failed",
            )
    again = [pod for pod in pods if recreation(pod, situation).certain is not False]
    state = situation.state()
    for pod in pods:
        state.take_away(pod.metadata.uid)
    if closed in state.nodes:
        node = state.nodes[closed].node
        state.set_node(structs.replace(node, spec=structs.replace(node.spec, unschedulable=True)))
    homes = {pod.metadata.uid: _home(pod, state) for pod in again}
    crowded = _without_room(again, state)
    return {
        uid: f"{words}, but not together with the other pods"
        if uid in crowded and words.startswith("fits")
        else words
        for uid, words in homes.items()
    }


def _home(pod: Pod, state: ClusterState) -> str:
    if pod.spec.scheduler_name not in ("", _DEFAULT_SCHEDULER):
        return f"scheduler {pod.spec.scheduler_name} places it"
    if pod.spec.resource_claims:
        return "where it fits is unknown: which devices its claims would get is not planned"
    judged = verdicts(replacement(pod), state)
    fitting = [name for name, rejection in judged.items() if rejection is None]
    if fitting == [pod.spec.node_name]:
        return "comes back to its node: no other node fits"
    if fitting:
        return f"fits on {fitting[0] if len(fitting) == 1 else counted(len(fitting), 'node')}"
    message = unavailable(len(judged), None, filter(None, judged.values()), None)
    return f"stays Pending: {in_plain_words('', message)}"


def _without_room(pods: Sequence[Pod], state: ClusterState) -> set[str]:
    """Pods that fit alone, but find no node once the others have theirs.

    The roomiest node stands for the scheduler's choice, which may be another one.
    """
    crowded = set()
    for pod in pods:
        again = replacement(pod)
        alone = [name for name, rejection in verdicts(again, state).items() if rejection is None]
        if alone:
            state.place(again, max(alone, key=lambda name: (_free(state, name), name)))
        else:
            crowded.add(pod.metadata.uid)
    return crowded


def _free(state: ClusterState, name: str) -> int:
    node = state.nodes[name]
    return node.allocatable.get("cpu", 0) - node.requested.get("cpu", 0)
