"""What `--profile` and `--all` change: which rules are asked, and whether effects stand alone."""

from __future__ import annotations

import pytest

from kvestigate.health.audit import NEEDS, AuditOptions, examine, sources_of
from kvestigate.health.model import Profile
from kvestigate.health.registry import RULES, chosen
from kvestigate.render.severity import Severity
from tests.health.cluster_of import cluster_of

PRIVILEGED = {
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "template": {"spec": {"containers": [{"name": "main", "image": "web", "resources": {
            "requests": {"cpu": "1"}}, "securityContext": {"privileged": True}}]}},
    },
}  # fmt: skip
NO_API = {
    "kind": "APIService",
    "metadata": {"name": "v1.example.com"},
    "spec": {"group": "example.com", "version": "v1", "service": {"namespace": "a", "name": "b"}},
    "status": {"conditions": [{"type": "Available", "status": "False", "reason": "Gone"}]},
}
STUCK = {
    "kind": "Namespace",
    "metadata": {"name": "old", "deletionTimestamp": "2026-03-01T11:00:00Z"},
    "status": {"phase": "Terminating", "conditions": [{
        "type": "NamespaceDeletionDiscoveryFailure", "status": "True",
        "message": "failing: example.com/v1: the server is currently unable"}]},
}  # fmt: skip


def rules_of(*profiles: Profile) -> set[str]:
    audit = examine(cluster_of([PRIVILEGED]), "x", AuditOptions(profiles=profiles))
    return {finding.rule for finding in audit.findings}


def test_advice_is_given_when_it_is_asked_for() -> None:
    assert rules_of() == {"privileged"}
    assert rules_of(Profile.SECURITY) >= {"privileged", "pod-security-restricted", "image-tag"}
    assert rules_of(Profile.RELIABILITY) == {"no-budget"}
    assert rules_of(Profile.COST) == {"no-limits"}
    assert rules_of(*Profile) >= {"privileged", "no-budget", "no-limits"}


@pytest.mark.parametrize("profile", Profile)
def test_a_profile_is_its_own_rules(profile: Profile) -> None:
    assert {rule.profile for rule in chosen([profile])} == {profile}
    assert any(rule.strict for rule in chosen([profile]))


def test_only_what_the_rules_need_is_read() -> None:
    assert set(sources_of(chosen([Profile.COST]))) < set(NEEDS)
    assert set(sources_of(RULES)) == set(NEEDS)


def test_an_audit_says_what_was_asked() -> None:
    audit = examine(cluster_of([]), "x", AuditOptions(profiles=(Profile.COST,), every_fault=True))
    assert (audit.profiles, audit.every_fault) == ((Profile.COST,), True)
    assert audit.checks == len(chosen([Profile.COST]))


def test_every_fault_stands_alone_if_that_is_asked_for() -> None:
    cluster = [NO_API, STUCK]
    (folded,) = examine(cluster_of(cluster), "x").findings
    assert [str(effect.subject) for effect in folded.effects] == ["Namespace old"]
    flat = examine(cluster_of(cluster), "x", AuditOptions(every_fault=True)).findings
    subjects = {str(finding.subject) for finding in flat}
    assert subjects == {"APIService v1.example.com", "Namespace old"}
    assert {finding.severity for finding in flat} == {Severity.CRITICAL}


def test_advice_is_never_a_cause() -> None:
    """A pod that may run as root does not explain why a webhook has no endpoints."""
    pod = {
        "kind": "Pod",
        "metadata": {"name": "guard", "namespace": "shop", "labels": {"app": "guard"}},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }
    service = {
        "kind": "Service",
        "metadata": {"name": "guard", "namespace": "shop"},
        "spec": {"ports": [{"port": 443}], "selector": {"app": "guard"}},
    }
    webhook = {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"},
        "webhooks": [
            {
                "name": "check",
                "clientConfig": {"service": {"namespace": "shop", "name": "guard"}},
            }
        ],
    }
    namespace = {"kind": "Namespace", "metadata": {"name": "shop"}}
    options = AuditOptions(profiles=tuple(Profile))
    audit = examine(cluster_of([pod, service, webhook, namespace]), "x", options)
    advised = [finding for finding in audit.findings if finding.rule == "run-as-root"]
    assert [finding.effects for finding in advised] == [()]
