"""Pods: what they ask for, where they run, how they fare."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from kvestigate.kube.views.meta import Condition, Metadata, View
from kvestigate.kube.views.placement import Affinity, Toleration, TopologySpreadConstraint


class ResourceRequirements(View, frozen=True):
    """Quantities by resource name: `cpu`, `memory`, `nvidia.com/gpu`."""

    requests: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)


class ContainerPort(View, frozen=True):
    name: str = ""
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = "TCP"


class VolumeMount(View, frozen=True):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    read_only: bool = False


class Container(View, frozen=True):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    volume_mounts: tuple[VolumeMount, ...] = ()
    restart_policy: str = ""
    """`Always` on an init container makes it a sidecar that runs beside the others."""


class ClaimSource(View, frozen=True):
    claim_name: str = ""


class OtherSource(View, frozen=True):
    """A source of which only the presence matters here."""


class Volume(View, frozen=True):
    """A volume; other sources than claims are nobody's business here."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: OtherSource | None = None
    """A claim made for this pod, named `POD-VOLUME`."""


class SchedulingGate(View, frozen=True):
    name: str = ""


class PodSpec(View, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduler_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = ""
    overhead: dict[str, str] = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    """Of the pod as a whole; where given, it replaces the sum over the containers."""
    volumes: tuple[Volume, ...] = ()
    active_deadline_seconds: int | None = None
    service_account_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    """The headless service under whose name the hostname resolves."""


class WaitingState(View, frozen=True):
    reason: str = ""
    message: str = ""


class RunningState(View, frozen=True):
    started_at: datetime | None = None


class TerminatedState(View, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(View, frozen=True):
    """One of the three, or none before the kubelet has said anything."""

    waiting: WaitingState | None = None
    running: RunningState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(View, frozen=True):
    name: str = ""
    container_id: str = field(name="containerID", default="")
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    """How it ended last time, if it was restarted."""


class PodStatus(View, frozen=True):
    phase: str = ""
    reason: str = ""
    """`Evicted`, `NodeLost`: why the whole pod is as it is."""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    start_time: datetime | None = None
    pod_ip: str = field(name="podIP", default="")
    nominated_node_name: str = ""
    """Where preemption is making room for it."""


class Pod(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(View, frozen=True):
    """The `template` of a workload."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
