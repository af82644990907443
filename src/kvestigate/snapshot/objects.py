"""The fields of objects that reports use: few of pods, because clusters have so many, and of other
kinds also the managed fields.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from kvestigate.kube.views import network, policy, workloads
from kvestigate.kube.views.meta import Condition, Metadata, View
from kvestigate.kube.views.pods import (
    ClaimSource,
    ResourceRequirements,
    TerminatedState,
    WaitingState,
)
from kvestigate.kube.views.pods import Presence as OtherSource


class Owner(View, frozen=True):
    kind: str = ""
    name: str = ""
    controller: bool = False


class PodMeta(View, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    owner_references: tuple[Owner, ...] = ()


class Container(View, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class Volume(View, frozen=True):
    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: OtherSource | None = None
    """A claim created for this pod, named `POD-VOLUME`."""


class PodSpec(View, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    overhead: dict[str, str] = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()

    @property
    def all_containers(self) -> tuple[Container, ...]:
        """Init containers first."""
        return (*self.init_containers, *self.containers)


class Running(View, frozen=True):
    """Without the start time, which no report uses and which differs between replicas."""


class ContainerState(View, frozen=True):
    waiting: WaitingState | None = None
    running: Running | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(View, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(View, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ip: str = field(name="podIP", default="")

    @property
    def all_statuses(self) -> tuple[ContainerStatus, ...]:
        """Of init containers first."""
        return (*self.init_container_statuses, *self.container_statuses)


class Pod(View, frozen=True):
    metadata: PodMeta = PodMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        """Succeeded or Failed: the pod no longer uses resources of its node."""
        return self.status.phase in ("Succeeded", "Failed")


class SecretData(View, frozen=True):
    """The certificate of a TLS Secret; its key is never decoded."""

    certificate: str = field(name="tls.crt", default="")


class TlsSecret(View, frozen=True):
    metadata: PodMeta = PodMeta()
    data: SecretData = SecretData()


class FieldsManager(View, frozen=True):
    """One client that wrote to an object, and the API version it used."""

    manager: str = ""
    api_version: str = ""
    time: datetime | None = None


class WrittenMeta(Metadata, frozen=True):
    managed_fields: tuple[FieldsManager, ...] = ()


class JobStatus(View, frozen=True):
    conditions: tuple[Condition, ...] = ()


class Job(View, frozen=True):
    """Only the conditions, because clusters keep many finished Jobs."""

    metadata: PodMeta = PodMeta()
    status: JobStatus = JobStatus()


class Written(View, frozen=True):
    """An object of which only the managed fields are used."""

    metadata: WrittenMeta = WrittenMeta()


class Deployment(workloads.Deployment, frozen=True):
    metadata: WrittenMeta = WrittenMeta()


class StatefulSet(workloads.StatefulSet, frozen=True):
    metadata: WrittenMeta = WrittenMeta()


class DaemonSet(workloads.DaemonSet, frozen=True):
    metadata: WrittenMeta = WrittenMeta()


class Ingress(network.Ingress, frozen=True):
    metadata: WrittenMeta = WrittenMeta()


class NetworkPolicy(network.NetworkPolicy, frozen=True):
    metadata: WrittenMeta = WrittenMeta()


class PodDisruptionBudget(policy.PodDisruptionBudget, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
