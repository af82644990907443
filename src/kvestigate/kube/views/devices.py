"""Dynamic resource allocation: claims on devices, classes of devices, slices that offer them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import field

from kvestigate.kube.views.meta import Condition, Metadata, View
from kvestigate.kube.views.placement import NodeSelector, Toleration

Attributes = dict[str, dict[str, Any]]
"""By name, each with one of the keys `string`, `int`, `bool` and `version`."""


class CelSelector(View, frozen=True):
    expression: str = ""


class DeviceSelector(View, frozen=True):
    cel: CelSelector = CelSelector()


class DeviceToleration(Toleration, frozen=True):
    """A taint of devices that a request accepts."""


class CapacityRequirements(View, frozen=True):
    requests: dict[str, str] = field(default_factory=dict)
    """By the name of a capacity, how much of a shared device is asked for."""


class SubRequest(View, frozen=True):
    """Devices of one class: a whole request, or one alternative of a request."""

    name: str = ""
    """Empty in a request that has no alternatives."""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    """Devices that are in use are given too."""
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(View, frozen=True):
    name: str = ""
    exactly: SubRequest | None = None
    first_available: tuple[SubRequest, ...] = ()
    """Alternatives, the preferred one first."""


class DeviceConstraint(View, frozen=True):
    requests: tuple[str, ...] = ()
    """`REQUEST` or `REQUEST/ALTERNATIVE`; empty for all requests of the claim."""
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceConfiguration(View, frozen=True):
    opaque: dict[str, Any] | None = None


class ClaimConfiguration(DeviceConfiguration, frozen=True):
    requests: tuple[str, ...] = ()


class DeviceClaim(View, frozen=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[ClaimConfiguration, ...] = ()


class ResourceClaimSpec(View, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceResult(View, frozen=True):
    """One device of an allocated claim."""

    request: str = ""
    """`REQUEST` or `REQUEST/ALTERNATIVE`."""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    share_id: str = field(name="shareID", default="")
    """Tells the shares of a device apart that several claims may have at once."""
    consumed_capacity: dict[str, str] = field(default_factory=dict)
    """By the name of a capacity, how much the share takes."""
    binding_conditions: tuple[str, ...] = ()
    """Conditions of the device that must be true before the pod is bound."""
    binding_failure_conditions: tuple[str, ...] = ()
    """Conditions of the device of which none may be true."""


class AllocatedConfiguration(ClaimConfiguration, frozen=True):
    source: str = ""
    """`FromClass` or `FromClaim`."""


class DeviceAllocation(View, frozen=True):
    results: tuple[DeviceResult, ...] = ()
    config: tuple[AllocatedConfiguration, ...] = ()


class Allocation(View, frozen=True):
    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    """Nodes that can use the devices; None for all nodes."""
    allocation_timestamp: datetime | None = None


class Consumer(View, frozen=True):
    """An object that a claim is reserved for."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = field(name="apiGroup", default="")


class AllocatedDeviceStatus(View, frozen=True):
    """What a driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str = field(name="shareID", default="")
    conditions: tuple[Condition, ...] | None = None
    """API servers write null for none."""


class ResourceClaimStatus(View, frozen=True):
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class DeviceClassSpec(View, frozen=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str = ""
    """The resource by which containers may ask for a device of the class without a claim."""


class DeviceClass(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaint(View, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class CapacityRange(View, frozen=True):
    min: str | None = None
    max: str | None = None
    step: str | None = None


class CapacityRequestPolicy(View, frozen=True):
    """Which amounts of a shared device's capacity can be had."""

    default: str | None = None
    """Taken by claims that name no amount."""
    valid_values: tuple[str, ...] = ()
    """In ascending order."""
    valid_range: CapacityRange | None = None


class Capacity(View, frozen=True):
    value: str = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(View, frozen=True):
    value: str = "0"


class CounterSet(View, frozen=True):
    """What the devices of a pool share, such as the memory of the GPU that they are parts of."""

    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class CounterConsumption(View, frozen=True):
    """What an allocated device takes of a counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class Device(View, frozen=True):
    name: str = ""
    attributes: Attributes = field(default_factory=dict)
    capacity: dict[str, Capacity] = field(default_factory=dict)
    taints: tuple[DeviceTaint, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    consumes_counters: tuple[CounterConsumption, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    binds_to_node: bool = False
    allow_multiple_allocations: bool = False
    """Several claims may have a share of the device at once."""


class Pool(View, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(View, frozen=True):
    driver: str = ""
    pool: Pool = Pool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ResourceSliceSpec = ResourceSliceSpec()
