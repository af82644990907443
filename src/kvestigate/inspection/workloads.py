"""The description of a workload: its pod template and its pods. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.inspection.pod_status import ready_of, status_of
from kvestigate.inspection.sections import Parts, Section, conditions, pairs, seen_as
from kvestigate.kube.selectors import from_label_selector
from kvestigate.kube.views.meta import Condition, Metadata, View
from kvestigate.kube.views.pods import PodTemplate
from kvestigate.snapshot import listings
from kvestigate.snapshot.model import Snapshot

_REPLICAS = {"readyReplicas": "ready", "availableReplicas": "available"}

# The fields that count pods, by kind: in the spec, then in the status.
_COUNTS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "Deployment": ({"replicas": "desired"}, {"updatedReplicas": "updated", **_REPLICAS}),
    "StatefulSet": ({"replicas": "desired"}, {"updatedReplicas": "updated", **_REPLICAS}),
    "ReplicaSet": ({"replicas": "desired"}, _REPLICAS),
    "DaemonSet": (
        {},
        {
            "desiredNumberScheduled": "desired",
            "updatedNumberScheduled": "updated",
            "numberReady": "ready",
            "numberAvailable": "available",
        },
    ),
    "Job": (
        {"parallelism": "in parallel", "completions": "wanted"},
        {"active": "active", "succeeded": "succeeded", "failed": "failed"},
    ),
}

KINDS = frozenset(_COUNTS)


class _Spec(View, frozen=True):
    template: PodTemplate = PodTemplate()


class _Status(View, frozen=True):
    conditions: tuple[Condition, ...] = ()


class _Workload(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = msgspec.field(default_factory=_Status)


def workload(kind: str, body: dict[str, Any], related: Snapshot) -> Parts:
    decoded = seen_as(body, _Workload)
    spec = body["spec"]
    selector = from_label_selector(spec.get("selector"))
    facts = [(_counted(kind), _counts(kind, body)), *_details(spec), ("selector", str(selector))]
    template = tuple(
        (
            container.name,
            container.image,
            _written(container.resources.requests),
            _written(container.resources.limits),
        )
        for container in decoded.spec.template.spec.containers
    )
    pods = tuple(
        (pod.metadata.name, status_of(pod), "/".join(map(str, ready_of(pod))), pod.spec.node_name)
        for pod in related.of(listings.PODS_IN_FULL)
        if pod.metadata.namespace == decoded.metadata.namespace
        and selector.matches(pod.metadata.labels)
    )
    return facts, [
        Section("Containers", ("name", "image", "requests", "limits"), template),
        Section("Pods", ("name", "status", "ready", "node"), pods),
        pairs("Labels", decoded.metadata.labels),
        conditions(decoded.status.conditions),
    ]


def _counted(kind: str) -> str:
    return "pods" if kind in ("DaemonSet", "Job") else "replicas"


def _counts(kind: str, body: dict[str, Any]) -> str:
    """`2 desired, 2 updated, 1 ready, 1 available`"""
    spec, status = body["spec"], body.get("status") or {}
    wanted, observed = _COUNTS[kind]
    counts = [f"{spec[field]} {word}" for field, word in wanted.items() if field in spec]
    return ", ".join(
        [*counts, *(f"{status.get(field, 0)} {word}" for field, word in observed.items())]
    )


def _details(spec: dict[str, Any]) -> list[tuple[str, str]]:
    facts = []
    strategy = (spec.get("strategy") or spec.get("updateStrategy") or {}).get("type")
    if strategy:
        facts.append(("strategy", str(strategy)))
    if spec.get("serviceName"):
        facts.append(("service", str(spec["serviceName"])))
    if spec.get("paused"):
        facts.append(("paused", "yes (changes are not rolled out)"))
    if spec.get("suspend"):
        facts.append(("suspended", "yes (no pods are created)"))
    return facts


def _written(amounts: dict[str, str]) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in sorted(amounts.items())) or "-"
