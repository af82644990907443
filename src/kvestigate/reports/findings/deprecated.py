"""Versions of the API that are gone or going, and who still uses them. Pure.

Two witnesses: what objects remember of those who wrote them, and the server's own count of
requests. The second does not know who asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvestigate.render.severity import Severity
from kvestigate.reports.findings.model import Finding, Rule, Subject
from kvestigate.snapshot import listings
from kvestigate.snapshot.objects import FieldsManager, WrittenMeta
from kvestigate.snapshot.snapshot import Snapshot
from kvestigate.snapshot.source import Listing

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Ended:
    release: str
    """The first without it."""
    instead: str


_OF_KIND: dict[str, tuple[Listing[Any], dict[str, Ended]]] = {
    "Deployment": (
        listings.DEPLOYMENTS,
        _APPS := {
            "extensions/v1beta1": Ended("1.16", "apps/v1"),
            "apps/v1beta1": Ended("1.16", "apps/v1"),
            "apps/v1beta2": Ended("1.16", "apps/v1"),
        },
    ),
    "StatefulSet": (listings.STATEFUL_SETS, _APPS),
    "DaemonSet": (listings.DAEMON_SETS, _APPS),
    "Ingress": (
        listings.INGRESSES,
        {
            "extensions/v1beta1": Ended("1.22", "networking.k8s.io/v1"),
            "networking.k8s.io/v1beta1": Ended("1.22", "networking.k8s.io/v1"),
        },
    ),
    "NetworkPolicy": (
        listings.NETWORK_POLICIES,
        {"extensions/v1beta1": Ended("1.16", "networking.k8s.io/v1")},
    ),
    "PodDisruptionBudget": (listings.BUDGETS, {"policy/v1beta1": Ended("1.25", "policy/v1")}),
    "CronJob": (
        listings.CRON_JOBS,
        {
            "batch/v2alpha1": Ended("1.21", "batch/v1"),
            "batch/v1beta1": Ended("1.25", "batch/v1"),
        },
    ),
    "HorizontalPodAutoscaler": (
        listings.AUTOSCALERS,
        {
            "autoscaling/v2beta1": Ended("1.25", "autoscaling/v2"),
            "autoscaling/v2beta2": Ended("1.26", "autoscaling/v2"),
        },
    ),
}


def written_in_old_versions(snapshot: Snapshot) -> Iterator[Finding]:
    for kind, (listing, ended) in _OF_KIND.items():
        for each in snapshot.of(listing):
            meta: WrittenMeta = each.metadata
            for version, who in _versions(meta).items():
                if version not in ended:
                    continue
                end = ended[version]
                yield Finding(
                    rule="deprecated-manifest",
                    severity=Severity.WARNING,
                    subject=Subject(kind, meta.name, meta.namespace),
                    evidence=f"{who} wrote it as {version}, which Kubernetes {end.release} "
                    f"no longer serves; it is {end.instead} now",
                    why="the next time it is applied from the same source, it is refused",
                    command=f"kubectl -n {meta.namespace} get {kind.lower()} {meta.name} "
                    "-o yaml --show-managed-fields",
                )


def _versions(meta: WrittenMeta) -> dict[str, str]:
    """Version -> who used it."""
    found = {it.api_version: _who(it) for it in meta.managed_fields}
    applied = _applied_version(meta.annotations.get(_APPLIED, ""))
    if applied:
        found.setdefault(applied, "kubectl apply")
    return found


def _who(by: FieldsManager) -> str:
    name = by.manager or "somebody"
    return f"{name} (on {by.time:%Y-%m-%d})" if by.time else name


def _applied_version(text: str) -> str:
    try:
        document = json.loads(text) if text else {}
    except ValueError:
        return ""
    version = document.get("apiVersion") if isinstance(document, dict) else None
    return version if isinstance(version, str) else ""


def requested_in_old_versions(snapshot: Snapshot) -> Iterator[Finding]:
    """Only those with a release in which they end: others stay, whatever is thought of them."""
    for sample in snapshot.of(listings.DEPRECATED_REQUESTS):
        labels, release = sample.labels, sample.labels.get("removed_release", "")
        if not release or not sample.value:
            continue
        version = "/".join(it for it in (labels.get("group"), labels.get("version")) if it)
        resource = "/".join(it for it in (labels.get("resource"), labels.get("subresource")) if it)
        yield Finding(
            rule="deprecated-requests",
            severity=Severity.WARNING,
            subject=Subject("APIVersion", f"{resource}.{version}"),
            evidence=f"somebody has asked for {resource} in {version} since the server started; "
            "its audit log names the client, under k8s.io/deprecated",
            why=f"Kubernetes {release} no longer serves it, and then these requests fail",
            command=f"kubectl get --raw {listings.DEPRECATED_REQUESTS.path} | "
            f"grep {listings.DEPRECATED_REQUESTS.metric}",
        )


RULES = (
    Rule(
        "deprecated-manifest",
        "An object was written in a version that is no longer served.",
        tuple(listing for listing, _ in _OF_KIND.values()),
        written_in_old_versions,
    ),
    Rule(
        "deprecated-requests",
        "A client asks for a version that will no longer be served.",
        (listings.DEPRECATED_REQUESTS,),
        requested_in_old_versions,
    ),
)
