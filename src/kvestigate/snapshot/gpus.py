"""The names of GPU resources, and the containers that request them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kvestigate.kube import quantities
from kvestigate.kube.requests import Amounts
from kvestigate.snapshot.pods import Pod

NVIDIA = "NVIDIA"
AMD = "AMD"
INTEL = "Intel"

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

_WORK = 1
"""Percent of utilization from which a GPU counts as busy."""
_HELD_MIB = 1024
"""A GPU without a loaded program uses far less memory."""


GpuRequest = tuple[str, str, int]
"""A container, a GPU resource and the requested amount."""


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


def at_work(utilization: float | None) -> bool:
    return utilization is not None and utilization >= _WORK


def occupied(utilization: float | None, memory_used_mib: float | None) -> bool:
    """Whether the GPU is in use, allocated to a pod or not."""
    return at_work(utilization) or (memory_used_mib or 0.0) >= _HELD_MIB
