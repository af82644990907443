"""What a task is: the validated form of a SkyPilot task file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvestigate.jobs.tasks.limits import Limits

DEFAULT_IMAGE = "python:3.13-slim"


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of CPU or memory a node needs."""

    quantity: str
    """In Kubernetes' notation: `4`, `500m`, `16Gi`."""
    at_least: bool = False
    """Written with a `+`: more is welcome, so it is a request without a limit."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    count: int
    name: str = ""
    """`A100`; empty for any GPU."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """After which failures of its program a task is started again; lost nodes always count."""

    restarts: int = 0
    """How often after any exit code other than 0."""
    exit_codes: tuple[int, ...] = ()
    """After these always."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What each node of a task needs."""

    cpus: Amount | None = None
    memory: Amount | None = None
    accelerator: Accelerator | None = None
    instance_type: str = ""
    use_spot: bool = False
    disk: str = ""
    """Ephemeral storage, `256Gi`."""
    ports: tuple[int, ...] = ()
    image: str = DEFAULT_IMAGE
    labels: Mapping[str, str] = field(default_factory=dict)
    recovery: Recovery = field(default_factory=Recovery)


@dataclass(frozen=True, slots=True)
class Upload:
    """Local files that a task finds in its container."""

    source: str
    """A file or directory here: `.`, `~/code`."""
    target: str
    """Where in the container; below the home directory if it begins with `~/`."""
    where: str
    """The field that asks for it: `file_mounts./remote`."""


@dataclass(frozen=True, slots=True)
class Task:
    run: str
    name: str = ""
    """As the user wrote it; empty for `task-ID`."""
    num_nodes: int = 1
    workdir: str = ""
    """A directory in the container; below the home directory if it begins with `~/`."""
    uploads: tuple[Upload, ...] = ()
    choices: tuple[Resources, ...] = (Resources(),)
    """Never empty; several where the task says `any_of`, `ordered` or a list of accelerators."""
    envs: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Volume's name by the path where it is mounted."""
    setup: str = ""
    limits: Limits = field(default_factory=Limits)
    ignored: tuple[str, ...] = ()
    """Paths of fields of SkyPilot that are not honoured: `resources.disk_tier`."""
