"""ResourceSlices, ResourceClaims and DeviceClasses as a snapshot keeps them.

A cluster offers tens of thousands of devices with a dozen attributes each. What a device is
follows from a few of them; the others are dropped as soon as a device is decoded.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime

from msgspec import field, structs

from kvestigate.errors import InputError
from kvestigate.kube import quantities
from kvestigate.kube.views.devices import DeviceTaint, Pool, SubRequest
from kvestigate.kube.views.meta import CondensedMetadata, Metadata, View

GPU, PARTITION = "gpu", "partition"
"""What a device is; every other device has an empty kind."""

_PARTITIONS = ("mig", "partition")
_GPUS = ("gpu", "amdgpu", "vfio", "xpu")
_UUIDS = ("uuid", "UUID")
_PARENTS = ("parentUUID", "parentUuid", "parentPciAddr")
_PROFILES = ("profile", "partitionProfile", "migProfile")
_MODELS = ("productName", "model", "family")
_MIB = 1024 * 1024


class Attribute(View, frozen=True):
    """The value of an attribute; one of the fields is set."""

    string: str | None = None
    version: str | None = None
    int_: int | None = field(name="int", default=None)


class Capacity(View, frozen=True):
    value: str = "0"


class DeviceFacts(View, frozen=True):
    """What the attributes of a device say."""

    type: str = ""
    """The attribute as it is written: `gpu`, `mig`, `vfio`, `channel`."""
    uuid: str = ""
    parent: str = ""
    """The uuid of the GPU that a partition is a part of."""
    profile: str = ""
    """`1g.10gb`"""
    model: str = ""
    """`NVIDIA H100 80GB HBM3`"""
    memory_mib: int | None = None
    index: str = ""


_NO_ATTRIBUTES: dict[str, Attribute] = {}
_NO_CAPACITY: dict[str, Capacity] = {}


class SliceDevice(View, frozen=True):
    name: str = ""
    attributes: dict[str, Attribute] = field(default_factory=dict)
    """Empty once decoded: `facts` has what is used."""
    capacity: dict[str, Capacity] = field(default_factory=dict)
    """Empty once decoded."""
    taints: tuple[DeviceTaint, ...] = ()
    node_name: str = ""
    """Only in slices whose devices are on different nodes."""
    allow_multiple_allocations: bool = False
    facts: DeviceFacts = DeviceFacts()

    def __post_init__(self) -> None:
        structs.force_setattr(self, "facts", _facts(self.attributes, self.capacity))
        structs.force_setattr(self, "attributes", _NO_ATTRIBUTES)
        structs.force_setattr(self, "capacity", _NO_CAPACITY)


class DeviceSliceSpec(View, frozen=True):
    driver: str = ""
    pool: Pool = Pool()
    node_name: str = ""
    devices: tuple[SliceDevice, ...] = ()


class DeviceSlice(View, frozen=True):
    """A ResourceSlice: devices that claims, not resource names, are allocated from."""

    metadata: CondensedMetadata = CondensedMetadata()
    spec: DeviceSliceSpec = DeviceSliceSpec()


class ClaimedDevice(View, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False


class ClaimedDevices(View, frozen=True):
    results: tuple[ClaimedDevice, ...] = ()


class ClaimAllocation(View, frozen=True):
    devices: ClaimedDevices = ClaimedDevices()
    allocation_timestamp: datetime | None = None


class ClaimUser(View, frozen=True):
    resource: str = ""
    name: str = ""


class ClaimStatus(View, frozen=True):
    allocation: ClaimAllocation | None = None
    reserved_for: tuple[ClaimUser, ...] = ()


class ClaimRequest(View, frozen=True):
    exactly: SubRequest | None = None
    first_available: tuple[SubRequest, ...] = ()

    @property
    def preferred(self) -> SubRequest:
        """What is asked for, or the first of several alternatives."""
        return self.exactly or next(iter(self.first_available), SubRequest())


class ClaimRequests(View, frozen=True):
    requests: tuple[ClaimRequest, ...] = ()


class ClaimSpec(View, frozen=True):
    devices: ClaimRequests = ClaimRequests()


class DeviceClaim(View, frozen=True):
    """A ResourceClaim: devices that pods asked for, and those that were allocated."""

    metadata: Metadata = Metadata()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


def kind_of(driver: str, facts: DeviceFacts) -> str:
    """`GPU`, `PARTITION`, or empty for a device that is no GPU.

    A driver of GPUs is called `gpu.VENDOR` and may leave the type out; with a type that is none of
    a GPU, as the channels of NVIDIA's compute domains, the device is none.
    """
    kind = facts.type.lower()
    if any(kind == word or kind.endswith(f"-{word}") for word in _PARTITIONS):
        return PARTITION
    if kind in _GPUS or (not kind and driver.startswith("gpu.")):
        return GPU
    return ""


def _facts(attributes: Mapping[str, Attribute], capacity: Mapping[str, Capacity]) -> DeviceFacts:
    if not attributes and not capacity:
        return DeviceFacts()
    short = {name.rpartition("/")[2]: value for name, value in attributes.items()}

    def text(*names: str) -> str:
        values = (short[name] for name in names if name in short)
        return next((value.string or value.version or "" for value in values), "")

    index = short.get("index")
    return DeviceFacts(
        type=sys.intern(text("type")),
        uuid=text(*_UUIDS),
        parent=text(*_PARENTS),
        profile=sys.intern(text(*_PROFILES)),
        model=sys.intern(text(*_MODELS)),
        memory_mib=_memory(capacity),
        index="" if index is None or index.int_ is None else str(index.int_),
    )


def _memory(capacity: Mapping[str, Capacity]) -> int | None:
    for name, amount in capacity.items():
        if name.rpartition("/")[2] == "memory":
            try:
                return quantities.whole(amount.value) // _MIB
            except InputError:
                return None
    return None
