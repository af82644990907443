"""GPUs of nodes, and the containers that request them. Pure.

NVIDIA's GPU feature discovery labels nodes with most details. For AMD and Intel, the vendor follows
from the resource name and the model from the labels of their own tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kvestigate.kube import quantities
from kvestigate.kube.requests import Amounts, amounts
from kvestigate.kube.views.core import Node
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.pods import Pod

NVIDIA = "NVIDIA"
AMD = "AMD"
INTEL = "Intel"

UUIDS = "kvestigate.dev/gpu-uuids"
"""The annotation of embedded nodes with the uuids of their GPUs, sorted by index."""

MIG_PREFIX = "nvidia.com/mig-"
SHARED = ".shared"
"""The suffix of a resource whose devices are time-sliced: `nvidia.com/gpu.shared`."""

_VENDORS = {
    "nvidia.com/gpu": NVIDIA,
    "nvidia.com/gpu.shared": NVIDIA,
    "amd.com/gpu": AMD,
    "gpu.intel.com/i915": INTEL,
    "gpu.intel.com/xe": INTEL,
}

_MODEL_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "gpu.intel.com/product",
)
_WORK = 1
"""Percent of utilization from which a GPU counts as busy."""
_HELD_MIB = 1024
"""A GPU without a loaded program uses far less memory."""
_MEMORY_LABEL = "nvidia.com/gpu.memory"


GpuRequest = tuple[str, str, int]
"""A container, a GPU resource and the requested amount."""


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """The GPUs of one node."""

    node: str
    vendor: str
    model: str
    """The value of the label, `NVIDIA-H100-80GB-HBM3`; empty without one."""
    count: int
    """Physical devices if a label says it, otherwise the allocatable ones."""
    memory_mib: int | None
    """The memory of one device; None if unknown."""
    driver: str
    cuda: str
    """The CUDA version that the driver supports."""
    mig_strategy: str
    """`none`, `single`, `mixed`; empty on devices without MIG."""
    mig_profiles: Amounts
    """`1g.10gb` -> instances, if the node has them as separate resources."""
    sharing: str
    """`time-slicing` or `mps`; empty if a device is allocated to one container."""
    replicas: int
    """Containers that can share one device."""
    allocatable: Amounts
    """By resource name; healthy devices only."""
    requested: Amounts | None
    """By pods on the node; None if the pods could not be listed."""

    @property
    def free(self) -> int | None:
        if self.requested is None:
            return None
        return sum(self.allocatable.values()) - sum(self.requested.values())


@dataclass(frozen=True, slots=True)
class Consumer:
    """A container that requests GPUs."""

    namespace: str
    pod: str
    container: str
    node: str
    """Empty while the pod is not scheduled."""
    resource: str
    amount: int
    phase: str


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU or MIG instance with a known uuid."""

    uuid: str
    node: str
    index: str
    """The number of the GPU on its node."""
    user: str | None = None
    """`namespace/pod/container`; empty if not allocated, None if unknown."""
    utilization: float | None = None
    """Percent; None if unknown."""
    memory_used_mib: float | None = None
    """None if unknown."""


def vendor_of(resource: str) -> str:
    """The vendor of a GPU resource; empty for all other resources."""
    if resource.startswith(MIG_PREFIX):
        return NVIDIA
    return _VENDORS.get(resource, "")


def gpus_only(resources: Mapping[str, int]) -> Amounts:
    return {name: amount for name, amount in resources.items() if vendor_of(name)}


def consumers(pods: Iterable[Pod]) -> tuple[Consumer, ...]:
    """The containers that request GPUs, sorted by node and name."""
    unsorted = (consumer for pod in pods if not pod.finished for consumer in _consumers(pod))
    return tuple(
        sorted(unsorted, key=lambda c: (c.node, c.namespace, c.pod, c.container, c.resource))
    )


def nodes_with_gpus(
    nodes: Iterable[Node], requested: Mapping[str, Amounts] | None
) -> tuple[NodeGpus, ...]:
    """By name. `requested` is by node, from `capacity`; None if it is unknown."""
    found = (
        node_gpus(node, None if requested is None else requested.get(node.metadata.name, {}))
        for node in nodes
    )
    return tuple(sorted(filter(None, found), key=lambda gpus: gpus.node))


def node_gpus(node: Node, requested: Amounts | None) -> NodeGpus | None:
    """The GPUs of a node; None if it has none. `requested` is None if it is unknown."""
    labels = node.metadata.labels
    allocatable = gpus_only(amounts(node.status.allocatable))
    counted = _number(labels.get("nvidia.com/gpu.count"))
    if not any(allocatable.values()) and not counted:
        return None
    vendor = next((vendor_of(name) for name, amount in allocatable.items() if amount), NVIDIA)
    replicas = max(_number(labels.get("nvidia.com/gpu.replicas")), 1)
    return NodeGpus(
        node=node.metadata.name,
        vendor=vendor,
        model=next((labels[label] for label in _MODEL_LABELS if label in labels), ""),
        count=counted or sum(allocatable.values()),
        memory_mib=_number(labels.get(_MEMORY_LABEL)) or None,
        driver=_version(labels, "nvidia.com/cuda.driver-version.full", "nvidia.com/cuda.driver"),
        cuda=_version(labels, "nvidia.com/cuda.runtime-version.full", "nvidia.com/cuda.runtime"),
        mig_strategy=_mig_strategy(labels),
        mig_profiles={
            name.removeprefix(MIG_PREFIX): amount
            for name, amount in allocatable.items()
            if name.startswith(MIG_PREFIX)
        },
        sharing=_sharing(labels, allocatable, replicas),
        replicas=replicas,
        allocatable=allocatable,
        requested=None if requested is None else gpus_only(requested),
    )


def gpu_requests(pod: Pod) -> Iterator[GpuRequest]:
    """The GPU requests of the containers of a pod."""
    for container in pod.spec.all_containers:
        for resource, written in container.resources.requests.items():
            # Most containers request only CPU and memory, which are not parsed here.
            if vendor_of(resource) and (amount := quantities.whole(written)):
                yield container.name, resource, amount


def _consumers(pod: Pod) -> Iterator[Consumer]:
    for container, resource, amount in gpu_requests(pod):
        yield Consumer(
            namespace=pod.metadata.namespace,
            pod=pod.metadata.name,
            container=container,
            node=pod.spec.node_name,
            resource=resource,
            amount=amount,
            phase=pod.status.phase,
        )


def devices(nodes: Iterable[Node], readings: Iterable[GpuReading]) -> tuple[Device, ...]:
    """Every GPU with a known uuid, from the node's annotation or an exporter."""
    by_uuid: dict[str, Device] = {}
    for node in nodes:
        uuids = node.metadata.annotations.get(UUIDS, "")
        for index, uuid in enumerate(filter(None, uuids.split(","))):
            by_uuid[uuid] = Device(uuid, node.metadata.name, str(index))
    for reading in readings:
        user = "/".join(
            part for part in (reading.namespace, reading.pod, reading.container) if part
        )
        if reading.uuid:
            by_uuid[reading.uuid] = Device(
                reading.uuid,
                reading.node,
                reading.index,
                user,
                reading.utilization,
                reading.memory_used_mib,
            )
            divided = reading.uuid.partition("/")
            if divided[1]:
                by_uuid.pop(divided[0], None)  # only its MIG instances can be allocated
    return tuple(sorted(by_uuid.values(), key=_place))


def _place(device: Device) -> tuple[str, int, str, int, str]:
    """Sorts by node, then by number: 2 before 10."""
    return device.node, len(device.index), device.index, len(device.uuid), device.uuid


def at_work(utilization: float | None) -> bool:
    return utilization is not None and utilization >= _WORK


def occupied(utilization: float | None, memory_used_mib: float | None) -> bool:
    """Whether the GPU is in use, allocated to a pod or not."""
    return at_work(utilization) or (memory_used_mib or 0.0) >= _HELD_MIB


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
