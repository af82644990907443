"""Pods: what they ask for, where they run, how they fare.

A view decodes and keeps only the fields it declares. `Pod` is what most programs read. Its base,
`CondensedPod`, is for reading all pods of a cluster at once: of 8.5 KB of JSON it keeps 5.4 KB,
where `Pod` keeps 10.4 KB, and a quarter of a KB once replicas share what they have in common,
where `Pod` would keep twice that.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from kvestigate.kube.views.meta import CondensedMetadata, Condition, Metadata, View
from kvestigate.kube.views.placement import Affinity, Toleration, TopologySpreadConstraint


class ContainerClaim(View, frozen=True):
    """A claim of the pod whose devices a container gets."""

    name: str = ""
    request: str = ""
    """Only the devices of this request; empty for all devices of the claim."""


class ResourceRequirements(View, frozen=True):
    """Quantities by resource name: `cpu`, `memory`, `nvidia.com/gpu`."""

    requests: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


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


class CondensedContainer(View, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""
    """`Always` on an init container makes it a sidecar that runs beside the others."""


class Container(CondensedContainer, frozen=True):
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()


class ClaimSource(View, frozen=True):
    claim_name: str = ""


class Presence(View, frozen=True):
    """Something of which only the presence matters: none of its fields are kept."""


class Volume(View, frozen=True):
    """A volume; its source is kept if that is a claim, or data that ends with the pod."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Presence | None = None
    """A claim made for this pod, named `POD-VOLUME`."""
    empty_dir: Presence | None = None


class SchedulingGate(View, frozen=True):
    name: str = ""


class CondensedPodSpec(View, frozen=True):
    containers: tuple[CondensedContainer, ...] = ()
    init_containers: tuple[CondensedContainer, ...] = ()
    node_name: str = ""
    overhead: dict[str, str] = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    """Of the pod as a whole; where given, it replaces the sum over the containers."""
    volumes: tuple[Volume, ...] = ()

    @property
    def all_containers(self) -> tuple[CondensedContainer, ...]:
        """Init containers first."""
        return (*self.init_containers, *self.containers)


class PodResourceClaim(View, frozen=True):
    """Devices that a pod needs, by a ResourceClaim or by the template of one."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    """The claim that was made from the template; None if none is needed."""


class PodSpec(CondensedPodSpec, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    """Devices of dynamic resource allocation."""
    scheduler_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = ""
    active_deadline_seconds: int | None = None
    service_account_name: str = ""
    runtime_class_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    """The headless service under whose name the hostname resolves."""
    resource_claims: tuple[PodResourceClaim, ...] = ()


class WaitingState(View, frozen=True):
    reason: str = ""
    message: str = ""


class RunningState(Presence, frozen=True):
    started_at: datetime | None = None


class TerminatedState(View, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class CondensedContainerState(View, frozen=True):
    """One of the three, or none before the kubelet has said anything."""

    waiting: WaitingState | None = None
    running: Presence | None = None
    """Without the start time, which would tell all replicas apart."""
    terminated: TerminatedState | None = None


class ContainerState(CondensedContainerState, frozen=True):
    running: RunningState | None = None


class CondensedContainerStatus(View, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: CondensedContainerState = CondensedContainerState()
    last_state: CondensedContainerState = CondensedContainerState()
    """How it ended last time, if it was restarted."""


class ContainerStatus(CondensedContainerStatus, frozen=True):
    container_id: str = field(name="containerID", default="")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class CondensedPodStatus(View, frozen=True):
    phase: str = ""
    reason: str = ""
    """`Evicted`, `NodeLost`: why the whole pod is as it is."""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[CondensedContainerStatus, ...] = ()
    init_container_statuses: tuple[CondensedContainerStatus, ...] = ()
    pod_ip: str = field(name="podIP", default="")

    @property
    def all_statuses(self) -> tuple[CondensedContainerStatus, ...]:
        """Of init containers first."""
        return (*self.init_container_statuses, *self.container_statuses)


class PodStatus(CondensedPodStatus, frozen=True):
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    start_time: datetime | None = None
    nominated_node_name: str = ""
    """Where preemption is making room for it."""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class CondensedPod(View, frozen=True):
    metadata: CondensedMetadata = CondensedMetadata()
    spec: CondensedPodSpec = CondensedPodSpec()
    status: CondensedPodStatus = CondensedPodStatus()

    @property
    def finished(self) -> bool:
        """It has ended for good and holds nothing of its node any more."""
        return self.status.phase in ("Succeeded", "Failed")


class Pod(CondensedPod, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(View, frozen=True):
    """The `template` of a workload."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
