"""How a DaemonSet's pod is tied to its node. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.kube.views.pods import Pod

DAEMON_TOLERATIONS: tuple[tuple[str, str], ...] = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""What a daemon lives with: it is there to mend such nodes."""
_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def daemon_tolerations(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """A template's tolerations with those that every daemon has."""
    wanted = [*DAEMON_TOLERATIONS, *([_HOST_NETWORK] if spec.get("hostNetwork") else [])]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    own = [each for each in spec.get("tolerations") or [] if each not in added]
    return [*own, *added]


def pinned(spec: dict[str, Any], node: str) -> dict[str, Any]:
    """A pod spec that the scheduler can only put on one node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = dict(spec.get("affinity") or {})
    towards = dict(affinity.get("nodeAffinity") or {})
    terms = (towards.get(required) or {}).get("nodeSelectorTerms") or [{}]
    towards[required] = {"nodeSelectorTerms": [{**term, "matchFields": [field]} for term in terms]}
    affinity["nodeAffinity"] = towards
    return {**spec, "affinity": affinity, "tolerations": daemon_tolerations(spec)}


def node_of(pod: Pod) -> str:
    """The node a daemon's pod is on, or is bound for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    for term in terms:
        for field in term.match_fields:
            if field.key == "metadata.name" and len(field.values) == 1:
                return field.values[0]
    return ""
