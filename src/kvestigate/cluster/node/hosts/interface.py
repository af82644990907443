"""What every host offers the agent: containers that start, tell their end, and can be entered."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kvestigate.cluster.node.gpu.model import Gpu
from kvestigate.cluster.node.hosts.logs import Log


class Propagation(enum.Enum):
    """Whether mounts that are made later appear on the other side of a bind."""

    NONE = "rprivate"
    FROM_HOST = "rslave"
    BOTH = "rshared"


@dataclass(frozen=True, slots=True)
class Bind:
    """A directory or file of the machine or node, seen at a path of the container."""

    source: str
    """A path of the machine, or with `on_node` a path of the node."""
    target: str
    read_only: bool = False
    on_node: bool = False
    propagation: Propagation = Propagation.NONE
    create: str = ""
    """`directory`, `shared` (one that all may write to) or `file`: what to make of a source
    that is not there."""
    memory: int | None = None
    """A tmpfs of so many bytes (0: no limit) is mounted on `source` first."""
    group: int | None = None
    """The group that owns the tmpfs."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """A directory of the node that is given to a group, with all that is in it."""

    path: str
    group: int
    only_on_mismatch: bool = False
    """Leave it alone if its root belongs to the group already."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Limits of one container, where the host can hold it to them."""

    memory: int | None = None
    """Bytes."""
    cpu_millis: int | None = None


@dataclass(frozen=True, slots=True)
class RunKey:
    """One run of one container."""

    pod_uid: str
    container: str
    attempt: int

    @property
    def id(self) -> str:
        return f"{self.pod_uid}_{self.container}_{self.attempt}"


class Network(Protocol):
    """A pod's place in the network."""

    def guard(self, listener: int, *, own_files: bool) -> None:
        """Answer for the network calls that the kernel tells on this descriptor, which is the
        network's from now on. `own_files`: whether the pod has an `/etc` of its own."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One run with everything resolved: nothing in it refers to the API any more."""

    key: RunKey
    argv: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str = ""
    binds: tuple[Bind, ...] = ()
    hostname: str = ""
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False
    """Whether stdin ends with the first who attaches."""
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    """Supplemental groups."""
    ownerships: tuple[Ownership, ...] = ()
    """Directories whose group is changed before the binds are made."""
    read_only_root: bool = False
    host_pid: bool = False
    shared_pids: bool = False
    """Whether the containers of the pod see each other's processes."""
    ceiling: Ceiling = Ceiling()
    network: Network | None = None
    """None: the machine's, as it is."""
    host_aliases: bool = False
    """Whether its `/etc/hosts` has names that no server knows."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended."""

    code: int
    out_of_memory: bool = False
    at: float = 0.0
    message: str = ""


class Process(Protocol):
    """A container's run, started or found again."""

    @property
    def key(self) -> RunKey: ...

    @property
    def log(self) -> Log: ...

    @property
    def env(self) -> Mapping[str, str]: ...

    @property
    def started_at(self) -> float: ...

    @property
    def ended(self) -> asyncio.Future[Ending]: ...

    def signal(self, number: int) -> None:
        """Send a signal to the command; a process that has ended takes none."""

    def kill(self) -> None:
        """End it and everything it started, now."""

    def write_stdin(self, data: bytes) -> None: ...

    def close_stdin(self) -> None: ...

    def resize(self, width: int, height: int) -> None: ...


class Session(Protocol):
    """A command run inside a container, with its streams in the caller's hands."""

    @property
    def ended(self) -> asyncio.Future[Ending]: ...

    async def read(self) -> tuple[str, bytes] | None:
        """The next piece of `stdout` or `stderr`; None at the end of both."""

    async def write(self, data: bytes) -> None: ...

    def close_stdin(self) -> None: ...

    def resize(self, width: int, height: int) -> None: ...

    def kill(self) -> None:
        """End the command, now."""

    async def aclose(self) -> None:
        """Give the streams up; the command is hung up on."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a container uses."""

    cpu_seconds: float = 0.0
    """Since its start."""
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What the machine under a node is."""

    os_image: str
    kernel: str
    architecture: str
    operating_system: str
    runtime: str
    """`kvestigate-directory://1.0`: which host this is."""
    boot_id: str
    machine_id: str
    cpu: int
    memory: int
    """Bytes."""
    disk: int
    limits: tuple[str, ...] = field(default=())
    """What this host cannot do, each a sentence for `kubectl describe node`."""


class LaunchFailed(Exception):
    """A container could not be started: `reason` is what its status will say."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def cannot_start(failure: OSError | ValueError) -> LaunchFailed:
    """The error for a process that the system refuses to start, whatever its command."""
    why = failure.strerror if isinstance(failure, OSError) else failure
    return LaunchFailed("ContainerCannotRun", f"exec: {why}")


class Host(Protocol):
    """One node's machine."""

    @property
    def volumes_root(self) -> Path | None:
        """The directory of the pods' volumes on the machine; None if the host keeps no volumes."""

    async def open(self) -> None:
        """Make the node ready to run containers; idempotent over agent restarts."""

    async def close(self, *, keep: bool) -> None:
        """Let go of the node: `keep` leaves its containers running, else only its disk is left."""

    def facts(self) -> Facts: ...

    async def start(self, launch: Launch) -> Process:
        """Raises `LaunchFailed`."""

    def shortfalls(self, launch: Launch) -> list[str]:
        """What a launch asks for and does not get here, each a sentence."""

    async def adopt(self) -> list[Process]:
        """The runs of an earlier agent, ended ones included."""

    async def enter(
        self, process: Process, argv: tuple[str, ...], *, tty: bool, stdin: bool
    ) -> Session:
        """Run a command where `process` is; raises `LaunchFailed`."""

    def resize(self, process: Process, ceiling: Ceiling) -> None:
        """Hold a running container to other limits, where it is held to any."""

    async def forget(self, pod_uid: str) -> None:
        """Remove what is left of a pod: logs, volumes, records."""

    def usage(self, process: Process) -> Usage: ...

    async def install_gpus(self, gpus: Sequence[Gpu]) -> None:
        """Give the node an `nvidia-smi` that tells of these."""

    async def show_memory(self, amount: int) -> None:
        """Make the node's `/proc/meminfo` tell of so many bytes, where the node has its own."""

    def show_gpus(self, gpus: Sequence[Gpu]) -> None:
        """What `nvidia-smi` tells from now on."""
