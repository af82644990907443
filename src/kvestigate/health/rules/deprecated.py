"""API versions that were or will be removed, and who still uses them. Pure.

There are two sources: the managed fields of objects, which name the client, and the API server's
count of requests, which does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.meta import FieldsManager, WrittenMeta
from kvestigate.snapshot.source import Listing

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Removal:
    release: str
    """The first Kubernetes release that does not serve the version: `1.25`."""
    instead: str
    """The version to use: `policy/v1`."""


_OF_KIND: dict[str, tuple[Listing[Any], dict[str, Removal]]] = {
    "Deployment": (
        listings.DEPLOYMENTS,
        _APPS := {
            "extensions/v1beta1": Removal("1.16", "apps/v1"),
            "apps/v1beta1": Removal("1.16", "apps/v1"),
            "apps/v1beta2": Removal("1.16", "apps/v1"),
        },
    ),
    "StatefulSet": (listings.STATEFUL_SETS, _APPS),
    "DaemonSet": (listings.DAEMON_SETS, _APPS),
    "Ingress": (
        listings.INGRESSES,
        {
            "extensions/v1beta1": Removal("1.22", "networking.k8s.io/v1"),
            "networking.k8s.io/v1beta1": Removal("1.22", "networking.k8s.io/v1"),
        },
    ),
    "NetworkPolicy": (
        listings.NETWORK_POLICIES,
        {"extensions/v1beta1": Removal("1.16", "networking.k8s.io/v1")},
    ),
    "PodDisruptionBudget": (listings.BUDGETS, {"policy/v1beta1": Removal("1.25", "policy/v1")}),
    "CronJob": (
        listings.CRON_JOBS,
        {
            "batch/v2alpha1": Removal("1.21", "batch/v1"),
            "batch/v1beta1": Removal("1.25", "batch/v1"),
        },
    ),
    "HorizontalPodAutoscaler": (
        listings.AUTOSCALERS,
        {
            "autoscaling/v2beta1": Removal("1.25", "autoscaling/v2"),
            "autoscaling/v2beta2": Removal("1.26", "autoscaling/v2"),
        },
    ),
}
_OF_ADMINISTRATORS: dict[str, tuple[Listing[Any], dict[str, Removal]]] = {
    "CustomResourceDefinition": (
        listings.DEFINITIONS,
        {"apiextensions.k8s.io/v1beta1": Removal("1.22", "apiextensions.k8s.io/v1")},
    ),
    "ValidatingWebhookConfiguration": (
        listings.VALIDATING_WEBHOOKS,
        _ADMISSION := {
            "admissionregistration.k8s.io/v1beta1": Removal(
                "1.22", "admissionregistration.k8s.io/v1"
            )
        },
    ),
    "MutatingWebhookConfiguration": (listings.MUTATING_WEBHOOKS, _ADMISSION),
    "Role": (
        listings.ROLES,
        _RBAC := {
            "rbac.authorization.k8s.io/v1alpha1": Removal("1.22", "rbac.authorization.k8s.io/v1"),
            "rbac.authorization.k8s.io/v1beta1": Removal("1.22", "rbac.authorization.k8s.io/v1"),
        },
    ),
    "ClusterRole": (listings.CLUSTER_ROLES, _RBAC),
    "RoleBinding": (listings.ROLE_BINDINGS, _RBAC),
    "ClusterRoleBinding": (listings.CLUSTER_ROLE_BINDINGS, _RBAC),
}
"""Kinds that not everybody may list."""


@rule(
    "deprecated-manifest",
    "An object was written with an API version that is no longer served.",
    *(listing for listing, _ in _OF_KIND.values()),
    uses=[listing for listing, _ in _OF_ADMINISTRATORS.values()],
)
def written_in_old_versions(cluster: Cluster) -> Iterator[Fault]:
    for kind, (listing, removals) in (*_OF_KIND.items(), *_OF_ADMINISTRATORS.items()):
        for obj in cluster.of(listing):
            meta: WrittenMeta = obj.metadata
            for version, writer in _versions(meta).items():
                if version not in removals:
                    continue
                removal = removals[version]
                yield Fault(
                    severity=Severity.WARNING,
                    subject=Subject(kind, meta.name, meta.namespace),
                    evidence=f"Written as {version} by {writer}. Kubernetes {removal.release} and "
                    f"later do not serve {version}; use {removal.instead}.",
                    why=f"Kubernetes {removal.release} and later refuse the same manifest.",
                    command=f"kubectl {_in(meta)}get {kind.lower()} {meta.name} "
                    "-o yaml --show-managed-fields",
                )


def _in(meta: WrittenMeta) -> str:
    return f"-n {meta.namespace} " if meta.namespace else ""


def _versions(meta: WrittenMeta) -> dict[str, str]:
    """API version -> the client that wrote the object with it."""
    writers = {entry.api_version: _writer(entry) for entry in meta.managed_fields}
    applied = _applied_version(meta.annotations.get(_APPLIED, ""))
    if applied:
        writers.setdefault(applied, "kubectl apply")
    return writers


def _writer(entry: FieldsManager) -> str:
    name = entry.manager or "an unknown client"
    return f"{name} (on {entry.time:%Y-%m-%d})" if entry.time else name


def _applied_version(text: str) -> str:
    try:
        document = json.loads(text) if text else {}
    except ValueError:
        return ""
    version = document.get("apiVersion") if isinstance(document, dict) else None
    return version if isinstance(version, str) else ""


@rule(
    "deprecated-requests",
    "A client requests an API version that will be removed.",
    listings.DEPRECATED_REQUESTS,
)
def requested_in_old_versions(cluster: Cluster) -> Iterator[Fault]:
    """Only API versions with an announced release of removal."""
    for sample in cluster.of(listings.DEPRECATED_REQUESTS):
        labels, release = sample.labels, sample.labels.get("removed_release", "")
        if not release or not sample.value:
            continue
        version = "/".join(labels[name] for name in ("group", "version") if labels.get(name))
        resource = "/".join(
            labels[name] for name in ("resource", "subresource") if labels.get(name)
        )
        yield Fault(
            severity=Severity.WARNING,
            subject=Subject("APIVersion", f"{resource}.{version}"),
            evidence=f"Clients have requested {resource} in {version} since the API server "
            "started. The server's audit log names them (annotation k8s.io/deprecated).",
            why=f"Kubernetes {release} and later do not serve {version}: these requests will fail.",
            command=f"kubectl get --raw {listings.DEPRECATED_REQUESTS.path} | "
            f"grep {listings.DEPRECATED_REQUESTS.metric}",
        )


RULES = (
    written_in_old_versions,
    requested_in_old_versions,
)
