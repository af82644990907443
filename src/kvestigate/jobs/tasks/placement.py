"""Which nodes a task may run on, from the labels that clouds and NVIDIA put on nodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.model import Resources, Task

Labels = Mapping[str, str]

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
GPU_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "gpu.nvidia.com/class",
    "skypilot.co/accelerator",
)
SPOT_LABELS = {
    "cloud.google.com/gke-spot": "true",
    "eks.amazonaws.com/capacityType": "SPOT",
    "karpenter.sh/capacity-type": "spot",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
_SPOT_TAINTS = ("cloud.google.com/gke-spot", "kubernetes.azure.com/scalesetpriority")
_GPU_TAINT = "nvidia.com/gpu"
_WORD = re.compile(r"[a-z0-9]+")

Requirement = tuple[str, tuple[str, ...]]
"""A label's key and its acceptable values."""


@dataclass(frozen=True, slots=True)
class Placement:
    resources: Resources
    """The choice that was taken."""
    terms: tuple[tuple[Requirement, ...], ...] = ()
    """A node fits if all requirements of any term hold; any node fits if there are none."""
    tolerations: tuple[str, ...] = field(default=())
    """Keys of taints."""


def needs_nodes(task: Task) -> bool:
    """Whether the placement depends on the labels of nodes."""
    return any(
        resources.instance_type
        or resources.use_spot
        or (resources.accelerator and resources.accelerator.name)
        for resources in task.choices
    )


def place(task: Task, nodes: Sequence[Labels]) -> Placement:
    """The first choice that has matching nodes. InputError names what the nodes have instead."""
    refusals = []
    for resources in task.choices:
        try:
            return _place(resources, nodes)
        except InputError as error:
            refusals.append(error)
    if len(refusals) == 1:
        raise refusals[0]
    raise InputError(
        "resources: no candidate fits this cluster: "
        + "; ".join(refusal.message for refusal in refusals),
        hint=refusals[0].hint,
    )


def accelerator_matches(name: str, value: str) -> bool:
    """Whether the label's `value` (`NVIDIA-A100-SXM4-80GB`) means the accelerator `name`."""
    wanted, label_words = _words(name), _words(value)
    if set(wanted) <= set(label_words):
        return True
    # SkyPilot writes RTX6000-Ada and RTXPRO6000 where labels have dashes.
    joined = "".join(wanted)
    starts = range(len(label_words))
    return any("".join(label_words[a : b + 1]) == joined for a in starts for b in starts[a:])


def _place(resources: Resources, nodes: Sequence[Labels]) -> Placement:
    alternatives: list[list[Requirement]] = []
    tolerations: list[str] = []
    accelerator = resources.accelerator
    if accelerator is not None:
        tolerations.append(_GPU_TAINT)
        if accelerator.name:
            alternatives.append(_gpu_labels(accelerator.name, nodes))
    if resources.instance_type:
        alternatives.append([_instance_type(resources.instance_type, nodes)])
    if resources.use_spot:
        tolerations += _SPOT_TAINTS
        alternatives.append(_spot(nodes))
    terms = tuple(product(*alternatives)) if alternatives else ()
    return Placement(resources, terms, tuple(tolerations))


def _gpu_labels(name: str, nodes: Sequence[Labels]) -> list[Requirement]:
    labels = {key: _values(key, nodes) for key in GPU_LABELS}
    candidates = [
        (key, tuple(value for value in values if accelerator_matches(name, value)))
        for key, values in labels.items()
    ]
    matching = [(key, values) for key, values in candidates if values]
    if not matching:
        raise InputError(
            f"resources.accelerators: no node has {name}",
            hint=_available(
                "accelerators", sorted({v for values in labels.values() for v in values})
            ),
        )
    return matching


def _instance_type(name: str, nodes: Sequence[Labels]) -> Requirement:
    types = _values(INSTANCE_TYPE, nodes)
    if name not in types:
        raise InputError(
            f"resources.instance_type: no node is of type {name}",
            hint=f"{_available('instance types', types)}; without the field any node will do",
        )
    return INSTANCE_TYPE, (name,)


def _spot(nodes: Sequence[Labels]) -> list[Requirement]:
    requirements: list[Requirement] = [
        (key, (value,))
        for key, value in SPOT_LABELS.items()
        if any(labels.get(key) == value for labels in nodes)
    ]
    if not requirements:
        raise InputError(
            "resources.use_spot: no node of this cluster is a spot instance",
            hint="leave use_spot out, or add a pool of spot nodes",
        )
    return requirements


def _available(what: str, values: Sequence[str]) -> str:
    return f"{what} here: {', '.join(values)}" if values else f"no node has a label for {what}"


def _values(key: str, nodes: Sequence[Labels]) -> list[str]:
    return sorted({labels[key] for labels in nodes if key in labels})


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
