"""PodDisruptionBudgets that protect nothing, or that let no node be drained. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from kvestigate.health.cluster import Cluster, as_selector, condition, is_ready, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.render.human import counted, listed, since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.objects import PodDisruptionBudget
from kvestigate.snapshot.pods import Pod

_KIND = "PodDisruptionBudget"
_PROMPT = timedelta(minutes=2)


def _fault(
    budget: PodDisruptionBudget,
    evidence: str,
    why: str,
    severity: Severity = Severity.WARNING,
    causes: tuple[Subject, ...] = (),
) -> Fault:
    meta = budget.metadata
    return Fault(
        severity=severity,
        subject=subject_of(_KIND, meta),
        evidence=evidence,
        why=why,
        command=f"kubectl -n {meta.namespace} describe pdb {meta.name}",
        causes=causes,
    )


def _live(cluster: Cluster) -> Iterator[tuple[PodDisruptionBudget, tuple[Pod, ...]]]:
    """Every budget with the pods that it protects."""
    for budget in cluster.of(listings.BUDGETS):
        if budget.metadata.deletion_timestamp is None:
            selector = as_selector(budget.spec.selector)
            yield budget, cluster.selected(selector, budget.metadata.namespace)


def _limit(budget: PodDisruptionBudget) -> str:
    if budget.spec.max_unavailable is not None:
        return f"maxUnavailable is {budget.spec.max_unavailable}"
    return f"minAvailable is {budget.spec.min_available}"


def _never_allows(budget: PodDisruptionBudget) -> bool:
    spec = budget.spec
    return spec.max_unavailable in (0, "0%") or spec.min_available == "100%"


@rule("budget-blocks-drain", "A PodDisruptionBudget allows no eviction.", listings.BUDGETS)
def budgets_that_block(cluster: Cluster) -> Iterator[Fault]:
    """Budgets that allow no disruption even if every pod is healthy."""
    for budget in cluster.of(listings.BUDGETS):
        status = budget.status
        if (
            status.expected_pods
            and not status.disruptions_allowed
            and not status.disrupted_pods
            and (status.current_healthy >= status.expected_pods or _never_allows(budget))
        ):
            yield _fault(
                budget,
                f"{status.current_healthy} of {status.expected_pods} pods are healthy, "
                f"and {status.desired_healthy} must stay healthy ({_limit(budget)}): no pod may be "
                "evicted.",
                "A drain of a node with one of these pods cannot finish.",
            )


@rule(
    "budget-unsatisfied",
    "A PodDisruptionBudget has too few healthy pods.",
    listings.BUDGETS,
    listings.PODS,
)
def unsatisfied(cluster: Cluster) -> Iterator[Fault]:
    for budget, pods in _live(cluster):
        status = budget.status
        if not status.expected_pods or status.current_healthy >= status.expected_pods:
            continue
        if status.disruptions_allowed or status.disrupted_pods or _never_allows(budget):
            continue
        waiting = [pod for pod in pods if not is_ready(pod)]
        allowed = condition(budget.status.conditions, "DisruptionAllowed")
        begin = allowed.last_transition_time if allowed is not None else None
        meta = budget.metadata
        if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
            stuck = "Its pods that are ready cannot be evicted."
        else:
            stuck = (
                "Pods that are not ready cannot be evicted either, unless "
                "unhealthyPodEvictionPolicy is AlwaysAllow."
            )
        yield Fault(
            severity=Severity.WARNING,
            subject=subject_of(_KIND, meta),
            evidence=f"{status.current_healthy} of {status.expected_pods} pods are healthy"
            f"{since_when(begin)}, and {status.desired_healthy} must be ({_limit(budget)}): no pod "
            f"may be evicted. {_not_ready(waiting)}",
            why=f"A drain of a node with one of these pods cannot finish. {stuck}",
            command=f"kubectl -n {meta.namespace} describe pdb {meta.name}",
            since=begin,
            causes=tuple(subject_of("Pod", pod.metadata) for pod in waiting),
            only_as_effect=not cluster.settled(begin),
        )


def _not_ready(waiting: list[Pod]) -> str:
    names = [pod.metadata.name for pod in waiting]
    return f"Not ready: {listed(names)}." if names else "The other pods do not exist."


@rule(
    "budget-selects-nothing",
    "A PodDisruptionBudget matches no pod.",
    listings.BUDGETS,
    listings.PODS,
    uses=(listings.DEPLOYMENTS, listings.STATEFUL_SETS, listings.REPLICA_SETS),
)
def without_pods(cluster: Cluster) -> Iterator[Fault]:
    for budget, pods in _live(cluster):
        meta, selector = budget.metadata, as_selector(budget.spec.selector)
        if pods or selector.selects_everything:
            continue
        if selector.selects_nothing:
            cause = "It has no selector"
        elif cluster.makers(selector, meta.namespace):
            continue  # scaled to 0, or its pods are still to come
        else:
            cause = f"No pod and no workload of the namespace matches the selector {selector}"
        yield _fault(
            budget,
            f"{cause}: it protects nothing.",
            "A drain may evict all pods that it was meant for at the same time.",
        )


@rule(
    "budgets-overlap",
    "A pod is protected by two PodDisruptionBudgets.",
    listings.BUDGETS,
    listings.PODS,
)
def overlapping(cluster: Cluster) -> Iterator[Fault]:
    budgets_of: dict[tuple[str, str], list[PodDisruptionBudget]] = {}
    for budget, pods in _live(cluster):
        for pod in pods:
            budgets_of.setdefault((pod.metadata.namespace, pod.metadata.name), []).append(budget)
    shared: dict[tuple[str, str], list[str]] = {}
    others: dict[tuple[str, str], tuple[PodDisruptionBudget, set[str]]] = {}
    for (namespace, pod_name), budgets in budgets_of.items():
        for budget in budgets if len(budgets) > 1 else ():
            key = (namespace, budget.metadata.name)
            shared.setdefault(key, []).append(pod_name)
            names = {other.metadata.name for other in budgets if other is not budget}
            others.setdefault(key, (budget, set()))[1].update(names)
    for key, (budget, names) in others.items():
        pods_in_common = sorted(shared[key])
        yield _fault(
            budget,
            f"{counted(len(pods_in_common), 'pod')} ({listed(pods_in_common)}) "
            f"also {'belongs' if len(pods_in_common) == 1 else 'belong'} to PodDisruptionBudget "
            f"{listed(sorted(names))}.",
            "The eviction API refuses a pod with more than one PodDisruptionBudget: a drain of "
            "its node cannot finish.",
        )


@rule(
    "budget-not-computed",
    "A PodDisruptionBudget cannot be computed.",
    listings.BUDGETS,
    listings.PODS,
)
def not_computed(cluster: Cluster) -> Iterator[Fault]:
    for budget, pods in _live(cluster):
        message = _why_not_computed(cluster, budget, pods)
        if message:
            yield _fault(
                budget,
                f"The number of pods that may be evicted cannot be computed: {message}",
                "Evictions of its pods are refused or not limited.",
            )


def _why_not_computed(cluster: Cluster, budget: PodDisruptionBudget, pods: tuple[Pod, ...]) -> str:
    meta, spec, failed = (
        budget.metadata,
        budget.spec,
        condition(budget.status.conditions, "DisruptionAllowed"),
    )
    if failed is not None and failed.reason == "SyncFailed":
        return f"{failed.reason}: {failed.message}"
    bare = [
        pod.metadata.name
        for pod in pods
        if not any(owner.controller for owner in pod.metadata.owner_references)
    ]
    if bare and (spec.max_unavailable is not None or isinstance(spec.min_available, str)):
        return (
            f"{_limit(budget)} needs pods with a controller, and {listed(bare)} "
            f"{'has' if len(bare) == 1 else 'have'} none; write minAvailable as a number."
        )
    if budget.status.observed_generation < meta.generation and cluster.settled(
        meta.creation_timestamp, _PROMPT
    ):
        return "the disruption controller has not seen its last change (status.observedGeneration)."
    return ""


RULES = (budgets_that_block, unsatisfied, without_pods, overlapping, not_computed)
