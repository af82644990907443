"""Pods as a node reads them: beside what others read, everything needed to run one. Pure."""

from __future__ import annotations

from msgspec import field

from kvestigate.kube.views import pods as views
from kvestigate.kube.views.meta import Metadata, View


class KeyRef(View, frozen=True):
    """A key of a ConfigMap or Secret."""

    name: str = ""
    key: str = ""
    optional: bool = False


class FieldRef(View, frozen=True):
    field_path: str = ""


class ResourceRef(View, frozen=True):
    container_name: str = ""
    resource: str = ""
    """`limits.cpu`, `requests.memory`"""
    divisor: str = "1"


class EnvSource(View, frozen=True):
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None


class EnvVar(View, frozen=True):
    name: str = ""
    value: str = ""
    value_from: EnvSource | None = None


class NameRef(View, frozen=True):
    name: str = ""
    optional: bool = False


class EnvFrom(View, frozen=True):
    prefix: str = ""
    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None


class ExecAction(View, frozen=True):
    command: tuple[str, ...] = ()


class HttpHeader(View, frozen=True):
    name: str = ""
    value: str = ""


class HttpAction(View, frozen=True):
    port: int | str = 0
    path: str = "/"
    host: str = ""
    scheme: str = "HTTP"
    http_headers: tuple[HttpHeader, ...] = ()


class TcpAction(View, frozen=True):
    port: int | str = 0
    host: str = ""


class GrpcAction(View, frozen=True):
    port: int = 0
    service: str = ""
    """Empty for the server as a whole."""


class SleepAction(View, frozen=True):
    seconds: int = 0


class Probe(View, frozen=True):
    exec: ExecAction | None = None
    http_get: HttpAction | None = None
    tcp_socket: TcpAction | None = None
    grpc: GrpcAction | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class LifecycleHandler(View, frozen=True):
    exec: ExecAction | None = None
    http_get: HttpAction | None = None
    tcp_socket: TcpAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(View, frozen=True):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str = ""
    """`SIGUSR1`; empty for SIGTERM."""


class SecurityContext(View, frozen=True):
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool = False


class Mount(views.VolumeMount, frozen=True):
    sub_path_expr: str = ""
    mount_propagation: str = ""
    """`HostToContainer` or `Bidirectional`; empty for neither."""


class ResizePolicy(View, frozen=True):
    resource_name: str = ""
    restart_policy: str = ""
    """`RestartContainer`, or nothing to be done."""


class Container(views.Container, frozen=True):
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFrom, ...] = ()
    resize_policy: tuple[ResizePolicy, ...] = ()
    volume_mounts: tuple[Mount, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"
    """`FallbackToLogsOnError` takes the end of the log where a failure left no message."""
    security_context: SecurityContext = SecurityContext()
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class KeyToPath(View, frozen=True):
    key: str = ""
    path: str = ""
    mode: int | None = None


CONFIG_MAP, SECRET = "configmaps", "secrets"

Reference = tuple[str, str]
"""Which plural, and the name in the pod's namespace."""


class KeySource(View, frozen=True):
    """The keys of a ConfigMap or Secret, as files."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: int = 0o644
    optional: bool = False

    @property
    def reference(self) -> Reference:
        raise NotImplementedError


class ConfigMapSource(KeySource, frozen=True):
    @property
    def reference(self) -> Reference:
        return CONFIG_MAP, self.name


class SecretSource(KeySource, frozen=True):
    """A volume names it `secretName`, a part of a projected volume `name`."""

    secret_name: str = ""

    @property
    def reference(self) -> Reference:
        return SECRET, self.secret_name or self.name


class DownwardFile(View, frozen=True):
    path: str = ""
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceRef | None = None
    mode: int | None = None


class DownwardSource(View, frozen=True):
    items: tuple[DownwardFile, ...] = ()
    default_mode: int = 0o644


class TokenSource(View, frozen=True):
    path: str = ""
    audience: str = ""
    expiration_seconds: int = 3600


class ProjectedPart(View, frozen=True):
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    downward_api: DownwardSource | None = field(name="downwardAPI", default=None)
    service_account_token: TokenSource | None = None


class ProjectedSource(View, frozen=True):
    sources: tuple[ProjectedPart, ...] = ()
    default_mode: int = 0o644


class EmptyDirSource(views.Presence, frozen=True):
    medium: str = ""
    """`Memory` for a tmpfs."""
    size_limit: str = ""


class HostPathSource(View, frozen=True):
    path: str = ""
    type: str = ""
    """`DirectoryOrCreate`, `File`, ...; empty checks nothing."""


class ClaimSource(views.ClaimSource, frozen=True):
    read_only: bool = False


class Volume(views.Volume, frozen=True):
    """A name and one source; one with none that we know cannot be mounted."""

    empty_dir: EmptyDirSource | None = None
    host_path: HostPathSource | None = None
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    projected: ProjectedSource | None = None
    downward_api: DownwardSource | None = field(name="downwardAPI", default=None)
    persistent_volume_claim: ClaimSource | None = None


class PodSecurity(View, frozen=True):
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    fs_group: int | None = None
    """The group that owns the volumes; every container runs with it as a supplemental group."""
    fs_group_change_policy: str = "Always"
    """`OnRootMismatch` leaves a volume alone whose root is right already."""
    supplemental_groups: tuple[int, ...] = ()


class ReadinessGate(View, frozen=True):
    condition_type: str = ""


class DnsOption(View, frozen=True):
    name: str = ""
    value: str = ""


class DnsConfig(View, frozen=True):
    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[DnsOption, ...] = ()


class HostAlias(View, frozen=True):
    ip: str = ""
    hostnames: tuple[str, ...] = ()


class PodSpec(views.CondensedPodSpec, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    """Added to a running pod to look at it; they run once."""
    volumes: tuple[Volume, ...] = ()
    hostname: str = ""
    subdomain: str = ""
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    service_account_name: str = ""
    enable_service_links: bool = True
    host_network: bool = False
    host_aliases: tuple[HostAlias, ...] = ()
    dns_policy: str = "ClusterFirst"
    dns_config: DnsConfig | None = None
    host_pid: bool = field(name="hostPID", default=False)
    share_process_namespace: bool = False
    security_context: PodSecurity = PodSecurity()
    readiness_gates: tuple[ReadinessGate, ...] = ()
    """Conditions that others set and that count for the pod's readiness."""
    resource_claims: tuple[views.PodResourceClaim, ...] = ()


class PodStatus(views.CondensedPodStatus, frozen=True):
    container_statuses: tuple[views.ContainerStatus, ...] = ()
    init_container_statuses: tuple[views.ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[views.PodResourceClaimStatus, ...] = ()
    start_time: str = ""
    """The text of the API, which is written back unchanged."""


class Pod(views.CondensedPod, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def containers(self) -> tuple[Container, ...]:
        """All that may run: init containers first, in their order."""
        spec = self.spec
        return spec.init_containers + spec.containers + spec.ephemeral_containers

    @property
    def grace(self) -> float:
        """Seconds between the request to stop and the kill."""
        requested = self.metadata.deletion_grace_period_seconds
        return float(self.spec.termination_grace_period_seconds if requested is None else requested)

    @property
    def full_name(self) -> str:
        """`NAME_NAMESPACE(UID)`, as messages of kubelets name a pod."""
        meta = self.metadata
        return f"{meta.name}_{meta.namespace}({meta.uid})"

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def container(self, name: str) -> Container | None:
        return next((container for container in self.containers if container.name == name), None)


def is_ephemeral(pod: Pod, container: Container) -> bool:
    return any(ephemeral.name == container.name for ephemeral in pod.spec.ephemeral_containers)


def is_sidecar(container: Container) -> bool:
    """Whether an init container is one that runs beside the others."""
    return container.restart_policy == "Always"
