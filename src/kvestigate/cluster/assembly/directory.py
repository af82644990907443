"""Where a named cluster lives on disk, and whether it runs.

    DIR/../.NAME.lock   held by whoever starts, stops or deletes the cluster, one at a time
    DIR/lock            held by the cluster's process for as long as it lives
    DIR/cluster.json    how it was made, and where it is served
    DIR/scenario.yaml   what it was made from, if it was made from a scenario
    DIR/seeded          there once all of the scenario is in the cluster
    DIR/cluster.log     what its process says
    DIR/plane/          the plane server's own directory: database, keys, admin.kubeconfig
    DIR/nodes/          the nodes' files; between `down` and `up`, their disks

Whether a cluster runs is asked of the lock, not of a pid: the kernel lets go of it however
the process ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from kvestigate.errors import InputError, NotFound, UsageError
from kvestigate.files import private_directory, private_file, replace_file
from kvestigate.kube.names import label_problems


class Shape(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a cluster is made of; kept, so that it comes back the same."""

    nodes: int = 3
    host: str = "auto"
    """auto, namespace, directory or simulated"""
    gpus: int = 0
    """Simulated GPUs on every node."""
    gpu_model: str = "H100"
    scenario: str = ""
    """The scenario that nodes and objects come from, instead of the fields above."""
    port: int = 0
    """0: one that the system chooses, the first time."""


class Record(msgspec.Struct, frozen=True):
    """What is known of a cluster from outside its process."""

    shape: Shape
    pid: int = 0
    url: str = ""
    host: str = ""
    """What the nodes were made of when it last ran: what `auto` had come to."""


def clusters_directory(environ: Mapping[str, str]) -> Path:
    """All clusters of this user."""
    state = environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state else Path.home() / ".local" / "state"
    return base / "kvestigate" / "clusters"


class ClusterDirectory:
    """One cluster's place."""

    def __init__(self, base: Path, name: str) -> None:
        if problems := label_problems(name):
            raise UsageError(
                f'--name: "{name}" is not a valid cluster name: {problems[0]}',
                hint="use a name such as lab or fleet-2",
            )
        self.name = name
        self.path = base / name

    @property
    def plane(self) -> Path:
        return self.path / "plane"

    @property
    def kubeconfig(self) -> Path:
        return self.plane / "admin.kubeconfig"

    @property
    def nodes(self) -> Path:
        return self.path / "nodes"

    @property
    def scenario(self) -> Path:
        return self.path / "scenario.yaml"

    @property
    def seeded(self) -> Path:
        return self.path / "seeded"

    @property
    def log(self) -> Path:
        return self.path / "cluster.log"

    @property
    def exists(self) -> bool:
        return (self.path / "cluster.json").exists()

    def read(self) -> Record:
        path = self.path / "cluster.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Record)
        except FileNotFoundError:
            names = ", ".join(cluster.name for cluster in known(self.path.parent))
            raise NotFound(
                f'cluster "{self.name}" does not exist',
                hint=f"choose an existing cluster with --name: {names}"
                if names
                else f"create it: kvestigate up --name {self.name}",
            ) from None
        except OSError as error:
            raise _unusable(path, error) from error
        except msgspec.DecodeError as error:
            raise InputError(str(error), where=str(path)) from error

    def make(self) -> None:
        """Be there, for files to be put in."""
        _make(self.path)

    def write(self, record: Record) -> None:
        self.make()
        content = msgspec.json.format(msgspec.json.encode(record))
        replace_file(self.path / "cluster.json", content)

    def is_running(self) -> bool:
        """Whether a process holds the cluster."""
        with self._lock_file() as descriptor:
            return not _locked(descriptor)

    @contextlib.contextmanager
    def changed_by_us(self) -> Iterator[None]:
        """Nobody else starts, stops or deletes the cluster during the block; they wait.

        The lock is beside the directory, since that may be deleted.
        """
        _make(self.path.parent)
        lock = self.path.with_name(f".{self.name}.lock")
        try:
            descriptor = private_file(lock, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise _unusable(lock, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def held(self) -> Iterator[Callable[[], bool]]:
        """Hold the cluster for the length of the block; UsageError if another process does.

        Yields the question whether the directory is still there, and still the one that is held.
        """
        self.make()
        with self._lock_file() as descriptor:
            if descriptor is None or not _locked(descriptor):
                raise UsageError(f'cluster "{self.name}" is already running')
            yield partial(_is_at, descriptor, self.path / "lock")

    @contextlib.contextmanager
    def _lock_file(self) -> Iterator[int | None]:
        if not self.path.is_dir():
            yield None
            return
        descriptor = private_file(self.path / "lock", os.O_RDWR | os.O_CREAT)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether a path leads to an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _make(path: Path) -> None:
    try:
        private_directory(path)
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot be used: {error.strerror}",
        where=str(path),
        hint="set XDG_STATE_HOME to a writable directory",
    )


def _locked(descriptor: int | None) -> bool:
    """Take the lock; False if another process has it."""
    if descriptor is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def known(base: Path) -> list[ClusterDirectory]:
    """Every cluster of this user, by name."""
    if not base.is_dir():
        return []
    directories = (
        ClusterDirectory(base, path.name) for path in sorted(base.iterdir()) if path.is_dir()
    )
    return [cluster for cluster in directories if cluster.exists]
