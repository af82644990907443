"""Nodes, namespaces, events and leases."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from kvestigate.kube.views.meta import Condition, Metadata, ObjectReference, View


class Taint(View, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""
    time_added: datetime | None = None


class NodeSpec(View, frozen=True):
    unschedulable: bool = False
    """Cordoned."""
    taints: tuple[Taint, ...] = ()
    provider_id: str = field(name="providerID", default="")


class NodeAddress(View, frozen=True):
    type: str = ""
    """`InternalIP`, `ExternalIP`, `Hostname`."""
    address: str = ""


class NodeInfo(View, frozen=True):
    architecture: str = ""
    operating_system: str = ""
    os_image: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""
    container_runtime_version: str = ""


class NodeCondition(Condition, frozen=True):
    last_heartbeat_time: datetime | None = None


class NodeStatus(View, frozen=True):
    capacity: dict[str, str] = field(default_factory=dict)
    allocatable: dict[str, str] = field(default_factory=dict)
    """What pods may use of the capacity."""
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeInfo = NodeInfo()


class Node(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NamespaceSpec(View, frozen=True):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(View, frozen=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Namespace(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class EventSeries(View, frozen=True):
    count: int = 0
    last_observed_time: datetime | None = None


class Event(View, frozen=True):
    """Of the core group; the `events.k8s.io` one is the same object under other names."""

    metadata: Metadata = Metadata()
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    """Set by newer reporters, which leave the first and last timestamps out."""
    series: EventSeries | None = None


class LeaseSpec(View, frozen=True):
    renew_time: datetime | None = None


class Lease(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: LeaseSpec = LeaseSpec()
