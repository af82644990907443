"""All rules, and running them. A new rule is one entry in the `RULES` of its topic."""

from __future__ import annotations

from collections.abc import Collection

from kvestigate.health.cluster import Cluster
from kvestigate.health.diagnosis import as_found, diagnose
from kvestigate.health.model import Fault, Finding, Profile
from kvestigate.health.rule import Rule
from kvestigate.health.rules import (
    access,
    admission,
    autoscalers,
    budgets,
    certificates,
    claims,
    controlplane,
    creating,
    cronjobs,
    custom,
    deprecated,
    endpoints,
    exposure,
    extensions,
    gpu_health,
    gpu_supply,
    gpus,
    hygiene,
    ingresses,
    jobs,
    leftovers,
    namespaces,
    node_versions,
    nodes,
    podsecurity,
    policies,
    references,
    requests,
    rollouts,
    running,
    scheduling,
    services,
    starting,
    storage,
    usage,
    volumes,
    warnings,
    webhooks,
    wiring,
    workloads,
)
from kvestigate.snapshot.gaps import Cause
from kvestigate.snapshot.model import Snapshot

RULES: tuple[Rule, ...] = (
    *nodes.RULES,
    *node_versions.RULES,
    *controlplane.RULES,
    *extensions.RULES,
    *custom.RULES,
    *webhooks.RULES,
    *admission.RULES,
    *namespaces.RULES,
    *references.RULES,
    *creating.RULES,
    *scheduling.RULES,
    *starting.RULES,
    *running.RULES,
    *leftovers.RULES,
    *requests.RULES,
    *jobs.RULES,
    *cronjobs.RULES,
    *workloads.RULES,
    *rollouts.RULES,
    *wiring.RULES,
    *autoscalers.RULES,
    *budgets.RULES,
    *services.RULES,
    *endpoints.RULES,
    *ingresses.RULES,
    *policies.RULES,
    *claims.RULES,
    *volumes.RULES,
    *storage.RULES,
    *certificates.RULES,
    *warnings.RULES,
    *usage.RULES,
    *gpus.RULES,
    *gpu_supply.RULES,
    *gpu_health.RULES,
    *deprecated.RULES,
    *access.RULES,
    *podsecurity.RULES,
    *hygiene.RULES,
    *exposure.RULES,
)


def chosen(profiles: Collection[Profile] = ()) -> tuple[Rule, ...]:
    """The rules of these profiles; without any, all but strict advice."""
    if not profiles:
        return tuple(rule for rule in RULES if not rule.strict)
    return tuple(rule for rule in RULES if rule.profile in profiles)


def faults(cluster: Cluster, rules: Collection[Rule]) -> list[Fault]:
    """What all rules say that can be checked, in the order of the rules."""
    checked = [rule for rule in rules if cluster.knows(*rule.needs)]
    return [fault for rule in checked for fault in rule.faults(cluster)]


def findings(
    snapshot: Snapshot, rules: Collection[Rule] | None = None, *, every_fault: bool = False
) -> tuple[Finding, ...]:
    """One for each cause; with `every_fault`, one for each fault."""
    cluster = Cluster(snapshot)
    seen = faults(cluster, chosen() if rules is None else rules)
    return as_found(seen) if every_fault else diagnose(cluster, seen)


def skipped(snapshot: Snapshot, rules: Collection[Rule] | None = None) -> tuple[str, ...]:
    """The names of rules that were not checked because a source they need was not read."""
    asked = chosen() if rules is None else rules
    return tuple(rule.name for rule in asked if not snapshot.knows(*rule.needs))


def incomplete(snapshot: Snapshot, rules: Collection[Rule]) -> tuple[str, ...]:
    """The names of rules that were checked although a part of what they need was not read.

    A truncated list does not count: its limit is a choice, and the gap says how much was read.
    """
    partial = {
        source
        for source, gaps in snapshot.parts.items()
        if any(gap.cause is not Cause.TRUNCATED for gap in gaps)
    }
    names = (rule.name for rule in rules if partial.intersection(rule.needs))
    missing = skipped(snapshot, rules)
    return tuple(name for name in names if name not in missing)
