"""The GPUs of one node: what its device plugin offers, what its labels say of them. Pure.

NVIDIA's GPU feature discovery labels nodes with most details. For AMD and Intel, the vendor follows
from the resource name and the model from the labels of their own tools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kvestigate.kube.requests import Amounts, amounts
from kvestigate.kube.views.core import Node
from kvestigate.snapshot.gpus import MIG_PREFIX, NVIDIA, SHARED, gpus_only, vendor_of
from kvestigate.snapshot.ledger.claimable import Offered, counts
from kvestigate.snapshot.ledger.model import UNKNOWN_GPU, Count, Device, NodeGpus, Offer

_MODEL_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "gpu.intel.com/product",
)
_COUNT = "nvidia.com/gpu.count"
_MEMORY = "nvidia.com/gpu.memory"
_INSTANCES = "-MIG-"
"""Before the profile, in the product of a node whose instances are offered as whole GPUs."""


def node_gpus(
    node: Node,
    requested: Amounts | None,
    identified: Iterable[Device] = (),
    claimable: Sequence[Offered] = (),
) -> NodeGpus | None:
    """The GPUs of a node; None if it has none.

    `requested` is None if it is unknown. `identified` are all known devices of the node, of which
    `claimable` are those that ResourceSlices offer.
    """
    labels = node.metadata.labels
    allocatable = gpus_only(amounts(node.status.allocatable))
    capacity = {**allocatable, **gpus_only(amounts(node.status.capacity))}
    count = _physical(labels, capacity, list(identified), claimable)
    if not any(allocatable.values()) and not claimable and not count:
        return None
    held = None if requested is None else gpus_only(requested)
    whole, partitions, shares = _offered(labels, allocatable, held)
    by_claims = counts(claimable)
    first = claimable[0][0] if claimable else None
    replicas = max(_replicas(labels, name) for name in (*allocatable, "nvidia.com/gpu"))
    vendor = next((vendor_of(name) for name, amount in allocatable.items() if amount), "")
    return NodeGpus(
        node=node.metadata.name,
        vendor=vendor or vendor_of_devices(claimable) or NVIDIA,
        model=next((labels[label] for label in _MODEL_LABELS if label in labels), "")
        or (first.model if first else ""),
        count=count,
        memory_mib=_number(labels.get(_MEMORY)) or _memory(claimable),
        driver=_version(labels, "nvidia.com/cuda.driver-version.full", "nvidia.com/cuda.driver"),
        cuda=_version(labels, "nvidia.com/cuda.runtime-version.full", "nvidia.com/cuda.runtime"),
        mig_strategy=_mig_strategy(labels),
        mig_profiles=_profiles(labels, allocatable, claimable),
        sharing=_sharing(labels, allocatable, replicas),
        replicas=replicas,
        allocatable=allocatable,
        requested=held,
        whole=whole + by_claims[0],
        partitions=partitions + by_claims[1],
        shares=shares,
        claimable=by_claims[0],
        claimable_partitions=by_claims[1],
    )


def pooled_gpus(claimable: Sequence[Offered]) -> NodeGpus:
    """Devices that are attached to no node."""
    whole, partitions = counts(claimable)
    first = claimable[0][0]
    return NodeGpus(
        node="",
        vendor=vendor_of_devices(claimable),
        model=first.model,
        count=_distinct([device for device, _ in claimable]),
        memory_mib=_memory(claimable),
        driver="",
        cuda="",
        mig_strategy="",
        mig_profiles=_profiles({}, {}, claimable),
        sharing="",
        replicas=1,
        allocatable={},
        requested={},
        whole=whole,
        partitions=partitions,
        claimable=whole,
        claimable_partitions=partitions,
    )


def vendor_of_devices(claimable: Sequence[Offered]) -> str:
    """By the beginning of the model: `NVIDIA`, `AMD`; empty if it is unknown."""
    words = (device.model.replace("-", " ").split() for device, _ in claimable)
    return next((each[0] for each in words if each), "")


def form_of(resource: str, labels: Mapping[str, str]) -> str:
    """`whole`, `partitions` or `shares`: what the devices of a resource are on a node."""
    if resource.endswith(SHARED) or _replicas(labels, resource) > 1:
        return "shares"
    divided = resource == "nvidia.com/gpu" and _INSTANCES in labels.get(_MODEL_LABELS[0], "")
    return "partitions" if divided or resource.startswith(MIG_PREFIX) else "whole"


def _offered(
    labels: Mapping[str, str], allocatable: Amounts, held: Amounts | None
) -> tuple[Count, Count, Count]:
    forms = dict.fromkeys(("whole", "partitions", "shares"), Count())
    for resource in {**allocatable, **(held or {})}:
        taken = None if held is None else held.get(resource, 0)
        forms[form_of(resource, labels)] += Count(allocatable.get(resource, 0), taken)
    return forms["whole"], forms["partitions"], forms["shares"]


def _physical(
    labels: Mapping[str, str],
    capacity: Amounts,
    identified: Sequence[Device],
    claimable: Sequence[Offered],
) -> int | None:
    known = _distinct(identified)
    divided = _INSTANCES in labels.get(_MODEL_LABELS[0], "")
    labelled = 0 if divided else _number(labels.get(_COUNT))
    if labelled:
        return max(labelled, known or 0)
    others = [device for device in identified if device.offer is not Offer.DRA]
    if any(form_of(name, labels) == "partitions" and capacity[name] for name in capacity):
        return known if others else None
    if known is None:
        return None
    whole = sum(-(-amount // _replicas(labels, name)) for name, amount in capacity.items())
    own = {device.physical for device in others}
    only_claimable = {device.physical for device, _ in claimable} - own
    return max(known, whole + len(only_claimable))


def _distinct(devices: Iterable[Device]) -> int | None:
    """Physical GPUs; None if the GPU of a partition is unknown."""
    physical = {device.physical for device in devices}
    return None if UNKNOWN_GPU in physical else len(physical)


def _profiles(
    labels: Mapping[str, str], allocatable: Amounts, claimable: Sequence[Offered]
) -> Amounts:
    profiles: Counter[str] = Counter()
    for name, amount in allocatable.items():
        if name.startswith(MIG_PREFIX):
            profiles[name.removeprefix(MIG_PREFIX).removesuffix(SHARED)] += amount
        elif form_of(name, labels) == "partitions":
            profiles[labels[_MODEL_LABELS[0]].rpartition(_INSTANCES)[2]] += amount
    profiles.update(device.profile for device, _ in claimable if device.parent)
    return dict(profiles)


def _replicas(labels: Mapping[str, str], resource: str) -> int:
    return max(_number(labels.get(f"{resource.removesuffix(SHARED)}.replicas")), 1)


def _memory(claimable: Sequence[Offered]) -> int | None:
    sizes = (device.memory_mib for device, _ in claimable if not device.parent)
    return next((size for size in sizes if size), None)


def _mig_strategy(labels: Mapping[str, str]) -> str:
    if labels.get("nvidia.com/mig.capable") != "true":
        return ""
    return labels.get("nvidia.com/mig.strategy") or "none"


def _sharing(labels: Mapping[str, str], allocatable: Amounts, replicas: int) -> str:
    strategy = labels.get("nvidia.com/gpu.sharing-strategy", "")
    if strategy and strategy != "none":
        return strategy
    shared = replicas > 1 or any(name.endswith(SHARED) for name in allocatable)
    return "time-slicing" if shared else ""


def _version(labels: Mapping[str, str], whole: str, parts: str) -> str:
    """The label with the whole version, or the version from the older labels of its parts."""
    if labels.get(whole):
        return labels[whole]
    numbers = (labels.get(f"{parts}.{part}") for part in ("major", "minor", "rev"))
    return ".".join(part for part in numbers if part)


def _number(text: str | None) -> int:
    """0 if the label is missing or not a number."""
    return int(text) if text and text.isascii() and text.isdigit() else 0
