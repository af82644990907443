"""What an App is: one program, and what it needs on a host or in pods. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from kvestigate.workspace.spec import SourceSpec, StorageMode

API_VERSION = "v1"


class Target(enum.StrEnum):
    """Where an App runs."""

    WORKSPACE = "workspace"
    """On a node's host, in a workspace."""
    K8S = "k8s"
    """In pods."""
    AUTO = "auto"
    """Wherever `pick_target` says."""


class Lifecycle(enum.StrEnum):
    """What becomes of the program in the course of time."""

    SERVICE = "service"
    """It runs until it is taken down."""
    BATCH = "batch"
    """It ends when its work is done."""
    INTERACTIVE = "interactive"
    """Somebody works with it."""


class RestartPolicy(enum.StrEnum):
    """When the program is started again."""

    ALWAYS = "always"
    ON_FAILURE = "on-failure"
    NEVER = "never"


class WorkloadKind(enum.StrEnum):
    """Which workload makes an App's pods."""

    DEPLOYMENT = "deployment"
    STATEFUL_SET = "statefulset"
    JOB = "job"


class ExposeMode(enum.StrEnum):
    """From where an App's ports are reached."""

    NONE = "none"
    """From nowhere but its pods: there is no Service."""
    CLUSTER = "cluster"
    NODE_PORT = "node-port"
    LOAD_BALANCER = "load-balancer"


class AppPhase(enum.StrEnum):
    """How far the last `up` or `down` has come."""

    APPLYING = "applying"
    """It was begun, and nobody wrote down how it ended."""
    UP = "up"
    FAILED = "failed"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Metadata:
    name: str
    namespace: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resources:
    """What one replica, shard or run needs."""

    gpu: int = 0
    cpu: str = ""
    """`4`, `500m`; empty: nothing is asked for."""
    memory: str = ""
    """`64Gi`"""


@dataclass(frozen=True, slots=True)
class Storage:
    """What the workspace is kept in; empty means what workspaces have by default."""

    mode: StorageMode | None = None
    tmpfs_size: str = ""
    hybrid_tmpfs_path: str = ""


@dataclass(frozen=True, slots=True)
class WorkspacePart:
    """Used when the target is a workspace."""

    node: str = ""
    """Naming one is the opt-in without which `auto` never chooses a workspace."""
    root: str = ""
    storage: Storage = field(default_factory=Storage)
    gpu_indices: tuple[int, ...] = ()
    """Physical GPUs; empty: any `resources.gpu` that are free."""
    cordon_node: bool = True
    sources: tuple[SourceSpec, ...] = ()
    """`local` is relative to the file that the App is in."""


@dataclass(frozen=True, slots=True)
class Port:
    SHORTHAND: ClassVar[str] = "port"
    port: int
    name: str = ""
    """Empty: `port-8080`."""
    target_port: int = 0
    """Where the program listens; 0: the same."""
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class K8sPart:
    """Used when the target is Kubernetes."""

    image: str = ""
    kind: WorkloadKind | None = None
    """None: a Job for `batch`, else a Deployment."""
    replicas: int = 1
    ports: tuple[Port, ...] = ()
    expose: ExposeMode = ExposeMode.CLUSTER
    health_path: str = ""
    """Asked on the first port; a pod gets no traffic until it answers."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    service_account: str = ""
    """Empty: pods get no token for the API."""
    env_from_secrets: tuple[str, ...] = ()
    """Secrets whose keys are variables of the program."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Claim by the path where it is mounted."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that the program finds in the directory `$APP_CONFIG_DIR`, whatever the target."""

    SHORTHAND: ClassVar[str] = "local"
    local: str = ""
    """Where it is here, relative to the file that the App is in."""
    name: str = ""
    """Empty: as it is called here."""
    content: str | None = None
    """Instead of `local`; `resolve_shared_config_files` reads the one into the other."""


@dataclass(frozen=True, slots=True)
class Distributed:
    """The program runs several times at once, and each run knows which one it is."""

    shards: int
    nodes: tuple[str, ...] = ()
    """For workspaces: shards take turns on them. Empty: all on `workspace.node`."""


@dataclass(frozen=True, slots=True)
class AppSpec:
    metadata: Metadata
    api_version: str = API_VERSION
    target: Target = Target.AUTO
    command: tuple[str, ...] = ()
    """Empty: what the image runs, which only pods have."""
    env: Mapping[str, str] = field(default_factory=dict)
    lifecycle: Lifecycle = Lifecycle.SERVICE
    restart: RestartPolicy | None = None
    """None: `always` for a service, `never` otherwise."""
    resources: Resources = field(default_factory=Resources)
    workspace: WorkspacePart = field(default_factory=WorkspacePart)
    k8s: K8sPart = field(default_factory=K8sPart)
    shared_config_files: tuple[ConfigFile, ...] = ()
    distributed: Distributed | None = None

    @property
    def full_name(self) -> str:
        """`research/trainer-01`"""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def restarts(self) -> RestartPolicy:
        """What `restart` says, or the lifecycle means."""
        if self.restart is not None:
            return self.restart
        service = self.lifecycle is Lifecycle.SERVICE
        return RestartPolicy.ALWAYS if service else RestartPolicy.NEVER

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes whose hosts were named for it."""
        listed = self.distributed.nodes if self.distributed is not None else ()
        return listed or ((self.workspace.node,) if self.workspace.node else ())
