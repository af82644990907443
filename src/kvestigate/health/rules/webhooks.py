"""Admission webhooks that refuse everything, or that nobody answers. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvestigate.health.cluster import Cluster, as_selector
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.backends import BACKENDS, backend_of, causes_of, unanswered
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.administration import Webhook, WebhookConfiguration
from kvestigate.snapshot.source import Listing

_KINDS: dict[str, Listing[WebhookConfiguration]] = {
    "ValidatingWebhookConfiguration": listings.VALIDATING_WEBHOOKS,
    "MutatingWebhookConfiguration": listings.MUTATING_WEBHOOKS,
}
_SYSTEM = "kube-system"


def webhooks(cluster: Cluster) -> Iterator[tuple[Subject, Webhook]]:
    for kind, listing in _KINDS.items():
        for configuration in cluster.of(listing):
            for webhook in configuration.webhooks:
                yield Subject(kind, configuration.metadata.name), webhook


@rule(
    "webhook-unanswered",
    "An admission webhook that fails closed has nobody who answers.",
    *_KINDS.values(),
    uses=BACKENDS,
)
def nobody_answers(cluster: Cluster) -> Iterator[Fault]:
    for subject, webhook in webhooks(cluster):
        if webhook.failure_policy != "Ignore":
            yield from _unanswered(
                cluster,
                subject,
                webhook,
                Severity.CRITICAL,
                f"failurePolicy is Fail, so the API server refuses {_what(webhook)}.",
                "Nothing that the webhook matches can be created or changed.",
            )


@rule(
    "webhook-without-effect",
    "An admission webhook that fails open has nobody who answers.",
    *_KINDS.values(),
    uses=BACKENDS,
    strict=True,
)
def without_effect(cluster: Cluster) -> Iterator[Fault]:
    """Nothing breaks: its owner chose to go on without the webhook."""
    for subject, webhook in webhooks(cluster):
        if webhook.failure_policy == "Ignore":
            yield from _unanswered(
                cluster,
                subject,
                webhook,
                Severity.INFO,
                f"failurePolicy is Ignore, so {_what(webhook)} pass unchecked.",
                "What the webhook should check or change is not checked or changed.",
            )


def _unanswered(
    cluster: Cluster, subject: Subject, webhook: Webhook, severity: Severity, effect: str, why: str
) -> Iterator[Fault]:
    backend = backend_of(webhook.client_config)
    cause = unanswered(cluster, backend) if backend is not None else ""
    if backend is not None and cause:
        yield Fault(
            severity=severity,
            subject=subject,
            evidence=f"Webhook {webhook.name} does not answer: {cause}. {effect}",
            why=why,
            command=f"kubectl get {subject.kind.lower()} {subject.name} -o yaml",
            causes=causes_of(cluster, backend),
            alike=webhook.name,
        )


@rule(
    "webhook-blocks-system",
    "An admission webhook that fails closed also guards kube-system.",
    *_KINDS.values(),
    listings.NAMESPACES,
    strict=True,
)
def blocks_the_system(cluster: Cluster) -> Iterator[Fault]:
    system = cluster.find(listings.NAMESPACES, _SYSTEM)
    for subject, webhook in webhooks(cluster):
        if system is None or webhook.failure_policy == "Ignore" or not _guards_pods(webhook):
            continue
        labels = {"kubernetes.io/metadata.name": _SYSTEM, **system.metadata.labels}
        if as_selector(webhook.namespace_selector).matches(labels):
            yield Fault(
                severity=Severity.WARNING,
                subject=subject,
                evidence=f"Webhook {webhook.name} fails closed and matches pods in {_SYSTEM}.",
                why="If the webhook stops, pods of Kubernetes itself cannot be created, perhaps "
                "not even those that would bring the webhook back.",
                command=f"kubectl get {subject.kind.lower()} {subject.name} -o yaml",
                alike=webhook.name,
            )


def _guards_pods(webhook: Webhook) -> bool:
    return any(
        {"*", "pods", "*/*", "pods/*"} & {*rule.resources}
        and {"*", ""} & {*rule.api_groups}
        and {"*", "CREATE"} & {*rule.operations}
        for rule in webhook.rules
    )


def _what(webhook: Webhook) -> str:
    """`CREATE and UPDATE of pods, deployments`"""
    operations = dict.fromkeys(one for rule in webhook.rules for one in rule.operations)
    resources = dict.fromkeys(one for rule in webhook.rules for one in rule.resources)
    doing = " and ".join("every change" if one == "*" else one for one in operations)
    return f"{doing or 'requests'} of {_listed(resources)}"


def _listed(resources: dict[str, Any]) -> str:
    names = ["all resources" if one in ("*", "*/*") else one for one in resources]
    return ", ".join(dict.fromkeys(names)) or "what it matches"


RULES = (
    nobody_answers,
    without_effect,
    blocks_the_system,
)
