"""The values of the ledger. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kvestigate.kube.requests import Amounts
from kvestigate.snapshot.gpus import Consumer


class Offer(enum.Enum):
    """How containers get at a device."""

    PLUGIN = "device-plugin"
    """By a resource name that a device plugin serves: `nvidia.com/gpu`."""
    MIG = "mig-resource"
    """As a MIG instance, by a resource name."""
    SHARED = "shared"
    """By a resource name, time-sliced or with MPS: several containers at a time."""
    DRA = "dra"
    """By a ResourceClaim."""
    UNKNOWN = "unknown"


class Right(enum.Enum):
    """By what right the holder of a device has it."""

    REQUEST = "request"
    """A container requests the resource of the device."""
    CLAIM = "claim"
    """A ResourceClaim was allocated the device."""
    RESERVATION = "reservation"
    """A workspace has reserved it."""
    NONE = "none"
    """A process uses the device, and nobody has given the device to it."""


@dataclass(frozen=True, slots=True)
class Count:
    """Devices of one form: whole GPUs, partitions, or replicas of shared devices."""

    offered: int = 0
    """Healthy and not withheld."""
    allocated: int | None = 0
    """None if unknown."""

    @property
    def free(self) -> int | None:
        return None if self.allocated is None else self.offered - self.allocated

    def __add__(self, other: Count) -> Count:
        known = self.allocated is not None and other.allocated is not None
        taken = (self.allocated or 0) + (other.allocated or 0) if known else None
        return Count(self.offered + other.offered, taken)


NONE = Count()


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """The GPUs of one node."""

    node: str
    """Empty for devices that are attached to no node, but can be used from several."""
    vendor: str
    model: str
    """As the label or the attribute has it, `NVIDIA-H100-80GB-HBM3`; empty without one."""
    count: int | None
    """Physical GPUs. None if unknown: partitions are offered, and nothing says of how many."""
    memory_mib: int | None
    """The memory of one GPU; None if unknown."""
    driver: str
    cuda: str
    """The CUDA version that the driver supports."""
    mig_strategy: str
    """`none`, `single`, `mixed`; empty on devices without MIG."""
    mig_profiles: Amounts
    """`1g.10gb` -> instances that are offered."""
    sharing: str
    """`time-slicing` or `mps`; empty if a device is allocated to one container."""
    replicas: int
    """Containers that can share one device."""
    allocatable: Amounts
    """By resource name; healthy devices only. DRA devices have no resource name."""
    requested: Amounts | None
    """By pods on the node; None if the pods could not be listed."""
    whole: Count = NONE
    """GPUs that are offered undivided and to one holder at a time."""
    partitions: Count = NONE
    shares: Count = NONE
    """Replicas of shared devices."""
    claimable: Count = NONE
    """Those of `whole` that ResourceSlices offer."""
    claimable_partitions: Count = NONE

    @property
    def free(self) -> int | None:
        """Whole GPUs and partitions that nobody holds."""
        return (self.whole + self.partitions + self.shares).free


UNKNOWN_GPU = "unknown"


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU, or one partition of a GPU, that can be told apart from others."""

    uuid: str
    """`GPU-...`, `MIG-...`, `GPU-.../1` for an instance that only an exporter knows, or
    `DRIVER/POOL/DEVICE` of a DRA device without a uuid."""
    node: str
    index: str
    """The number of the GPU on its node; empty if unknown."""
    user: str | None = None
    """`namespace/pod/container` or `namespace/pod`; empty if not allocated, None if unknown."""
    utilization: float | None = None
    """Percent; None if unknown."""
    memory_used_mib: float | None = None
    """None if unknown."""
    parent: str = ""
    """The uuid of the physical GPU that this is a partition of, or `UNKNOWN_GPU`; empty for a
    physical GPU."""
    profile: str = ""
    """`1g.10gb`; empty for a physical GPU."""
    model: str = ""
    memory_mib: int | None = None
    offer: Offer = Offer.UNKNOWN
    right: Right | None = None
    """None if nobody holds the device, or if that is unknown."""
    claims: tuple[str, ...] | None = ()
    """`namespace/name` of the ResourceClaims that were allocated the device; None if unknown."""

    @property
    def physical(self) -> str:
        """The uuid of the GPU that this device is, or is a part of."""
        return self.parent or self.uuid


@dataclass(frozen=True, slots=True)
class Waiting:
    """Requested by pods and claims that have no node yet."""

    whole: int = 0
    partitions: int = 0
    shares: int = 0


@dataclass(frozen=True, slots=True)
class Ledger:
    nodes: tuple[NodeGpus, ...] | None
    """Those with GPUs, by name; None if nodes could not be listed."""
    devices: tuple[Device, ...]
    """By node and number; GPUs that nothing identifies are only in the counts of `nodes`."""
    consumers: tuple[Consumer, ...] | None
    waiting: Waiting | None
    slices_known: bool = True
    """Whether ResourceSlices could be listed: without them there may be more GPUs."""

    def _total(self, forms: tuple[Count, ...]) -> Count:
        return sum(forms, NONE)

    @property
    def whole(self) -> Count:
        return self._total(tuple(node.whole for node in self.nodes or ()))

    @property
    def partitions(self) -> Count:
        return self._total(tuple(node.partitions for node in self.nodes or ()))

    @property
    def shares(self) -> Count:
        return self._total(tuple(node.shares for node in self.nodes or ()))

    @property
    def physical(self) -> int | None:
        """Physical GPUs; None if those of a node, or nodes, or ResourceSlices, are unknown."""
        counts = [node.count for node in self.nodes or ()]
        if self.nodes is None or not self.slices_known or None in counts:
            return None
        return sum(count or 0 for count in counts)
