"""Pods as a snapshot keeps them: what they refer to, what they demand, and how they fare.

Volume mounts, commands and the values of variables are left out: they tell replicas apart, take
memory, and may hold secrets.
"""

from __future__ import annotations

from msgspec import field, structs

from kvestigate.kube.views.meta import CondensedMetadata, View
from kvestigate.kube.views.placement import Affinity, Toleration, TopologySpreadConstraint
from kvestigate.kube.views.pods import (
    ClaimSource,
    CondensedContainer,
    CondensedPod,
    CondensedPodSpec,
    ContainerPort,
    Presence,
    SchedulingGate,
    Volume,
)

GPUS_SEEN = "NVIDIA_VISIBLE_DEVICES"
"""The variable that tells NVIDIA's container runtime which GPUs a container sees."""
HIDDEN = "(not kept)"


class NamedSource(View, frozen=True):
    """A Secret or ConfigMap that is used as a whole."""

    name: str = ""
    optional: bool = False


class SecretSource(View, frozen=True):
    secret_name: str = ""
    optional: bool = False


class HostPath(View, frozen=True):
    path: str = ""
    type: str = ""


class Projection(View, frozen=True):
    secret: NamedSource | None = None
    config_map: NamedSource | None = None


class Projected(View, frozen=True):
    sources: tuple[Projection, ...] = ()


class ClaimTemplateSpec(View, frozen=True):
    storage_class_name: str | None = None


class ClaimTemplate(View, frozen=True):
    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class EphemeralSource(Presence, frozen=True):
    volume_claim_template: ClaimTemplate = ClaimTemplate()


class CsiSource(View, frozen=True):
    driver: str = ""


class PodVolume(Volume, frozen=True):
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    secret: SecretSource | None = None
    config_map: NamedSource | None = None
    projected: Projected | None = None
    host_path: HostPath | None = None
    empty_dir: Presence | None = None
    csi: CsiSource | None = None


class KeyOf(View, frozen=True):
    """One key of a Secret or ConfigMap."""

    name: str = ""
    key: str = ""
    optional: bool = False


class ValueFrom(View, frozen=True):
    secret_key_ref: KeyOf | None = None
    config_map_key_ref: KeyOf | None = None


class Variable(View, frozen=True):
    """An environment variable. Its value is dropped as soon as it is decoded."""

    name: str = ""
    value_from: ValueFrom | None = None
    value: str = ""
    """`HIDDEN` if there is one. Only that of `GPUS_SEEN` is kept: it names devices."""

    def __post_init__(self) -> None:
        if self.value and self.name != GPUS_SEEN:
            # `$(OTHER)` only repeats another variable.
            repeats = self.value.startswith("$(") and self.value.endswith(")")
            structs.force_setattr(self, "value", "" if repeats else HIDDEN)


class VariablesFrom(View, frozen=True):
    secret_ref: NamedSource | None = None
    config_map_ref: NamedSource | None = None


class HttpGet(View, frozen=True):
    path: str = ""
    port: int | str = 0
    scheme: str = "HTTP"


class OnPort(View, frozen=True):
    port: int | str = 0


class Probe(View, frozen=True):
    http_get: HttpGet | None = None
    tcp_socket: OnPort | None = None
    grpc: OnPort | None = None
    exec: Presence | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    failure_threshold: int = 3


class Capabilities(View, frozen=True):
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class Confinement(View, frozen=True):
    """A seccomp or AppArmor profile."""

    type: str = ""


class Security(View, frozen=True):
    """The security context of a container; None: not set."""

    privileged: bool = False
    run_as_user: int | None = None
    run_as_non_root: bool | None = None
    allow_privilege_escalation: bool | None = None
    read_only_root_filesystem: bool = False
    capabilities: Capabilities = Capabilities()
    seccomp_profile: Confinement | None = None
    app_armor_profile: Confinement | None = None
    proc_mount: str = ""


class Sysctl(View, frozen=True):
    name: str = ""


class PodSecurity(View, frozen=True):
    """The security context of a pod."""

    run_as_user: int | None = None
    run_as_non_root: bool | None = None
    seccomp_profile: Confinement | None = None
    app_armor_profile: Confinement | None = None
    sysctls: tuple[Sysctl, ...] = ()


class Container(CondensedContainer, frozen=True):
    image_pull_policy: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[Variable, ...] = ()
    env_from: tuple[VariablesFrom, ...] = ()
    startup_probe: Probe | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    security_context: Security = Security()


class LocalReference(View, frozen=True):
    name: str = ""


class ReadinessGate(View, frozen=True):
    condition_type: str = ""


class PodResourceClaim(View, frozen=True):
    """A claim on devices; of the two names, one is set."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(CondensedPodSpec, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[PodVolume, ...] = ()
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduler_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    runtime_class_name: str = ""
    service_account_name: str = ""
    automount_service_account_token: bool | None = None
    image_pull_secrets: tuple[LocalReference, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    host_network: bool = False
    host_pid: bool = field(name="hostPID", default=False)
    host_ipc: bool = field(name="hostIPC", default=False)
    security_context: PodSecurity = PodSecurity()
    readiness_gates: tuple[ReadinessGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()

    @property
    def all_containers(self) -> tuple[Container, ...]:
        """Init containers first."""
        return (*self.init_containers, *self.containers)


class PodMetadata(CondensedMetadata, frozen=True):
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    deletion_grace_period_seconds: int | None = None


class Pod(CondensedPod, frozen=True):
    metadata: PodMetadata = PodMetadata()
    spec: PodSpec = PodSpec()


class TemplateMetadata(View, frozen=True):
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class PodTemplate(View, frozen=True):
    metadata: TemplateMetadata = TemplateMetadata()
    spec: PodSpec = PodSpec()
