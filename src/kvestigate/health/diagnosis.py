"""From faults to findings: what has one cause is one finding, and the worst comes first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Effect, Fault, Finding, Subject
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings

_SERVING = {"Service", "Ingress", "APIService", "Gateway", "HTTPRoute"}
"""Kinds that users notice first when they stop."""
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class _Group:
    """Faults that are alike, of one workload or of one object."""

    faults: list[Fault]
    effects: list[Fault] = field(default_factory=list)


def diagnose(cluster: Cluster, suspected: Sequence[Fault]) -> tuple[Finding, ...]:
    """One finding for each cause, with its effects."""
    workloads = _workloads(cluster)
    faults = _without_normal(suspected)
    parents = _parents(faults)
    groups: dict[tuple[Subject, str, str], _Group] = {}
    group_of: dict[int, _Group] = {}
    for index, fault in enumerate(faults):
        if parents[index]:
            continue
        group = groups.setdefault(_alike(fault, workloads), _Group([]))
        group.faults.append(fault)
        group_of[index] = group
    for index, fault in enumerate(faults):
        for root in _roots(index, parents) if parents[index] else ():
            group_of[root].effects.append(fault)
    findings = [_finding(group, workloads) for group in groups.values()]
    return tuple(sorted(findings, key=_urgency))


def as_found(faults: Iterable[Fault]) -> tuple[Finding, ...]:
    """Every fault as a finding of its own, in the order of severity."""
    findings = [_finding(_Group([fault]), {}) for fault in faults]
    return tuple(sorted(findings, key=_urgency))


def _without_normal(suspected: Sequence[Fault]) -> list[Fault]:
    """Drops faults `only_as_effect` that no other fault explains."""
    parents = _parents(suspected)
    return [
        fault
        for index, fault in enumerate(suspected)
        if not fault.only_as_effect
        or any(not suspected[cause].only_as_effect for cause in _ancestors(index, parents))
    ]


def _parents(faults: Sequence[Fault]) -> list[tuple[int, ...]]:
    """For each fault the faults that explain it. A fault that would explain itself is a cause."""
    by_subject: dict[Subject, list[int]] = {}
    for index, fault in enumerate(faults):
        if fault.explains:
            by_subject.setdefault(fault.subject.whole, []).append(index)
    parents = [
        tuple(
            parent
            for cause in fault.causes
            for parent in by_subject.get(cause.whole, ())
            if parent != index and _can_explain(faults[parent], fault)
        )
        for index, fault in enumerate(faults)
    ]
    return [
        () if own and index in _ancestors(index, parents) else own
        for index, own in enumerate(parents)
    ]


def _can_explain(cause: Fault, effect: Fault) -> bool:
    """Advice about an object is not the reason why something does not work."""
    return cause.severity is not Severity.INFO or effect.severity is Severity.INFO


def _ancestors(index: int, parents: Sequence[tuple[int, ...]]) -> dict[int, None]:
    """All that a fault follows from, near ones first."""
    known: dict[int, None] = {}
    waiting = list(parents[index])
    while waiting:
        one = waiting.pop(0)
        if one not in known:
            known[one] = None
            waiting += parents[one]
    return known


def _roots(index: int, parents: Sequence[tuple[int, ...]]) -> list[int]:
    return [ancestor for ancestor in _ancestors(index, parents) if not parents[ancestor]]


def _alike(fault: Fault, workloads: Mapping[Subject, Subject]) -> tuple[Subject, str, str]:
    """The key of faults that are one finding."""
    subject = workloads.get(fault.subject.whole, fault.subject)
    return subject, fault.rule, f"{fault.subject.container} {fault.alike}"


def _finding(group: _Group, workloads: Mapping[Subject, Subject]) -> Finding:
    fault = min(group.faults, key=lambda fault: (fault.severity.rank, fault.since or _NEVER))
    subject = workloads.get(fault.subject.whole, fault.subject)
    pods = tuple(dict.fromkeys(fault.subject.whole for fault in group.faults))
    times = [fault.since for fault in group.faults if fault.since is not None]
    everything = [*group.faults, *group.effects]
    effects = [Effect(effect.rule, effect.subject, effect.evidence) for effect in group.effects]
    return Finding(
        rule=fault.rule,
        severity=min((fault.severity for fault in everything), key=lambda it: it.rank),
        subject=subject,
        evidence=_evidence(fault, subject, len(pods)),
        why=fault.why,
        command=fault.command,
        since=min(times, default=None),
        objects=pods if subject != fault.subject else (),
        effects=tuple(dict.fromkeys(effects)),
    )


def _evidence(fault: Fault, subject: Subject, pods: int) -> str:
    """Names the pod if the subject is its workload."""
    if subject.whole == fault.subject.whole:
        return fault.evidence
    others = f" and {pods - 1} more" if pods > 1 else ""
    return f"Pod {fault.subject.name}{others}: {fault.evidence}"


def _urgency(finding: Finding) -> tuple[int, bool, int, datetime]:
    """Severe first; then what users notice, what affects most, and what has lasted longest."""
    touched = [finding.subject, *(effect.subject for effect in finding.effects)]
    serves = any(subject.kind in _SERVING for subject in touched)
    affected = len(finding.objects) + len(finding.effects)
    return finding.severity.rank, not serves, -affected, finding.since or _NEVER


def _workloads(cluster: Cluster) -> dict[Subject, Subject]:
    """Pod -> the workload that owns it."""
    found = {}
    for pod in cluster.of(listings.PODS):
        own = Subject("Pod", pod.metadata.name, pod.metadata.namespace)
        workload = cluster.workload(pod)
        if workload != own:
            found[own] = workload
    return found
