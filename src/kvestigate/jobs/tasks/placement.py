"""Which nodes a task may run on, from the labels, taints and sizes of nodes. Pure.

A task has one choice of resources or several, in order of preference. A choice that no node can
ever fit is skipped; those after it are kept, for when the one that was taken does not start.

`instance_type`, `use_spot` and `disk_size` are wishes: where the cluster cannot fulfil them, they
are ignored, and the placement says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.model import Resources, Task
from kvestigate.kube.requests import amounts
from kvestigate.kube.views.core import Node
from kvestigate.render.human import counted

Labels = Mapping[str, str]

GPU = "nvidia.com/gpu"
DISK = "ephemeral-storage"
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
_PASSING_TAINTS = "node.kubernetes.io/"
"""Of nodes that are cordoned or not ready, which changes."""
_WORD = re.compile(r"[a-z0-9]+")

Requirement = tuple[str, tuple[str, ...]]
"""A label's key and its acceptable values."""


@dataclass(frozen=True, slots=True)
class Placement:
    resources: Resources
    """The choice that was taken, without the wishes that were ignored."""
    terms: tuple[tuple[Requirement, ...], ...] = ()
    """A node fits if all requirements of any term hold; any node fits if there are none."""
    tolerations: tuple[str, ...] = field(default=())
    """Keys of taints."""
    ignored: tuple[str, ...] = ()
    """`resources.use_spot: no node of this cluster is a spot instance`"""
    skipped: tuple[str, ...] = ()
    """The choices before this one, and why no node can ever fit them."""
    later: tuple[Placement, ...] = ()
    """The choices after this one that can be tried."""


def needs_nodes(task: Task) -> bool:
    """Whether the placement depends on the nodes of the cluster."""
    return len(task.choices) > 1 or any(
        resources.instance_type
        or resources.use_spot
        or resources.disk
        or (resources.accelerator and resources.accelerator.name)
        for resources in task.choices
    )


def place(task: Task, nodes: Sequence[Node] | None) -> Placement:
    """The first choice that nodes can fit, with those after it. InputError if there is none.

    `nodes` is None if they are unknown: then only what needs no node's label can be placed.
    """
    if len(task.choices) == 1:
        return _place(task.choices[0], nodes)
    fitting: list[Placement] = []
    refusals: list[InputError] = []
    for resources in task.choices:
        try:
            placement = _place(resources, nodes)
            _check_room(placement, task.num_nodes, nodes)
        except InputError as error:
            refusals.append(error)
            continue
        if not fitting:
            skipped = tuple(_told(refusal) for refusal in refusals)
            placement = replace(placement, skipped=skipped)
        fitting.append(placement)
    if fitting:
        return replace(fitting[0], later=tuple(fitting[1:]))
    raise InputError(
        "resources: no candidate fits this cluster: " + "; ".join(map(_told, refusals)),
        hint=refusals[0].hint,
    )


def named(resources: Resources) -> str:
    """`A100:8`, or `4 CPUs` where a choice has no accelerator: how people know it."""
    accelerator = resources.accelerator
    if accelerator is not None:
        count = accelerator.count
        return f"{accelerator.name}:{count}" if accelerator.name else counted(count, "GPU")
    amounts_named = [("CPUs", resources.cpus), ("memory", resources.memory)]
    parts = [f"{amount.quantity} {name}" for name, amount in amounts_named if amount]
    return " and ".join(parts) or "any node"


def _told(refusal: InputError) -> str:
    return refusal.message


def accelerator_matches(name: str, value: str) -> bool:
    """Whether the label's `value` (`NVIDIA-A100-SXM4-80GB`) means the accelerator `name`."""
    wanted, label_words = _words(name), _words(value)
    if set(wanted) <= set(label_words):
        return True
    # SkyPilot writes RTX6000-Ada and RTXPRO6000 where labels have dashes.
    joined = "".join(wanted)
    starts = range(len(label_words))
    return any("".join(label_words[a : b + 1]) == joined for a in starts for b in starts[a:])


def _place(resources: Resources, nodes: Sequence[Node] | None) -> Placement:
    alternatives: list[list[Requirement]] = []
    tolerations: list[str] = []
    ignored: list[str] = []
    labels = [node.metadata.labels for node in nodes or ()]
    accelerator = resources.accelerator
    if accelerator is not None:
        tolerations.append(GPU)
        if accelerator.name and nodes is None:
            raise InputError(
                f"resources.accelerators: whether nodes have {accelerator.name} is unknown: "
                "listing nodes is forbidden",
                hint=f"write the count alone: {accelerator.count}",
            )
        if accelerator.name:
            alternatives.append(_gpu_labels(accelerator.name, labels))
    if nodes is None and (resources.instance_type or resources.use_spot):
        unknown = [("instance_type", resources.instance_type), ("use_spot", resources.use_spot)]
        ignored += [
            f"resources.{name}: listing nodes is forbidden" for name, wanted in unknown if wanted
        ]
        resources = replace(resources, instance_type="", use_spot=False)
    if resources.instance_type:
        if requirement := _instance_type(resources.instance_type, labels, ignored):
            alternatives.append([requirement])
        else:
            resources = replace(resources, instance_type="")
    if resources.use_spot:
        if spot := _spot(labels, ignored):
            tolerations += _SPOT_TAINTS
            alternatives.append(spot)
        else:
            resources = replace(resources, use_spot=False)
    if resources.disk and nodes is not None and not _has_disk(resources.disk, nodes):
        ignored.append(f"resources.disk_size: no node has {resources.disk} of ephemeral storage")
        resources = replace(resources, disk="")
    terms = tuple(product(*alternatives)) if alternatives else ()
    return Placement(resources, terms, tuple(tolerations), tuple(ignored))


def _has_disk(quantity: str, nodes: Sequence[Node]) -> bool:
    needed = amounts({DISK: quantity})[DISK]
    return any(
        not node.status.allocatable or amounts(node.status.allocatable).get(DISK, 0) >= needed
        for node in nodes
    )


def needed(resources: Resources) -> dict[str, str]:
    """What a node of the task requests, as Kubernetes writes it."""
    wanted = {
        "cpu": resources.cpus.quantity if resources.cpus else "",
        "memory": resources.memory.quantity if resources.memory else "",
        DISK: resources.disk,
        GPU: str(resources.accelerator.count) if resources.accelerator else "",
    }
    return {name: quantity for name, quantity in wanted.items() if quantity}


def _check_room(placement: Placement, count: int, nodes: Sequence[Node] | None) -> None:
    """InputError if the nodes, were they empty, could not run `count` pods of the placement."""
    if nodes is None:
        return
    wanted = amounts(needed(placement.resources))
    room = 0
    for node in nodes:
        if _admits(placement, node):
            room += _room(wanted, node, count)
    if room < count:
        name = named(placement.resources)
        what = f"{name}: no node can fit it" if not room else f"{name}: room for {room} of {count}"
        raise InputError(f"resources: {what}, even with all nodes empty")


def _room(wanted: Mapping[str, int], node: Node, count: int) -> int:
    """How many pods the node could run; as many as wanted if it has not reported its size."""
    if not node.status.allocatable:
        return count
    allocatable = amounts(node.status.allocatable)
    return min(
        (allocatable.get(name, 0) // amount for name, amount in wanted.items()), default=count
    )


def _admits(placement: Placement, node: Node) -> bool:
    """Whether labels and lasting taints let the pods onto the node."""
    labels = node.metadata.labels
    for taint in node.spec.taints:
        passing = taint.key.startswith(_PASSING_TAINTS) or taint.effect == "PreferNoSchedule"
        if not passing and (taint.effect != "NoSchedule" or taint.key not in placement.tolerations):
            return False
    return not placement.terms or any(
        all(labels.get(key) in values for key, values in term) for term in placement.terms
    )


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


def _instance_type(name: str, nodes: Sequence[Labels], ignored: list[str]) -> Requirement | None:
    types = _values(INSTANCE_TYPE, nodes)
    if name in types:
        return INSTANCE_TYPE, (name,)
    here = _available("instance types", types)
    ignored.append(f"resources.instance_type: no node is of type {name} ({here})")
    return None


def _spot(nodes: Sequence[Labels], ignored: list[str]) -> list[Requirement]:
    requirements: list[Requirement] = [
        (key, (value,))
        for key, value in SPOT_LABELS.items()
        if any(labels.get(key) == value for labels in nodes)
    ]
    if not requirements:
        ignored.append("resources.use_spot: no node of this cluster is a spot instance")
    return requirements


def _available(what: str, values: Sequence[str]) -> str:
    return f"{what} here: {', '.join(values)}" if values else f"no node has a label for {what}"


def _values(key: str, nodes: Sequence[Labels]) -> list[str]:
    return sorted({labels[key] for labels in nodes if key in labels})


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
