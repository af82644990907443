"""The kind of node that a pod asks for, in a word. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.kube.views.placement import NodeSelectorTerm
from kvestigate.kube.views.pods import PodSpec

# The most telling first: what machine it is, then which accelerator, pool, or own word.
LABELS = (
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "amd.com/gpu.product-name",
    "gpu.intel.com/product",
    "karpenter.k8s.aws/instance-family",
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "node-type",
    "nodetype",
    "node_type",
)
ROLE = "node-role.kubernetes.io/"


def node_type(spec: PodSpec) -> str | None:
    """From the selector, else from what affinity requires, else from what it prefers.

    Several values that would do are joined by commas.
    """
    for wanted in filter(None, _wishes(spec)):
        for label in LABELS:
            if wanted.get(label):
                return wanted[label]
        for label in sorted(wanted):
            if label.startswith(ROLE):
                return label.removeprefix(ROLE)
    return None


def _wishes(spec: PodSpec) -> Iterator[dict[str, str]]:
    yield spec.node_selector
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None:
        return
    for term in affinity.required.node_selector_terms if affinity.required else ():
        yield _labels(term)
    for preferred in sorted(affinity.preferred, key=lambda preference: -preference.weight):
        yield _labels(preferred.preference)


def _labels(term: NodeSelectorTerm) -> dict[str, str]:
    labels: dict[str, str] = {}
    for requirement in term.match_expressions:
        if requirement.operator == "In":
            labels[requirement.key] = ",".join(requirement.values)
        elif requirement.operator == "Exists" and requirement.key.startswith(ROLE):
            labels[requirement.key] = ""
    return labels
