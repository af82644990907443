"""Starting and stopping the background process that is a cluster."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kvestigate.cluster.assembly.directory import ClusterDirectory, Record, Shape
from kvestigate.errors import DeadlineExceeded, KvestigateError
from kvestigate.files import private_file

DAEMON = "kvestigate.cluster.assembly.daemon"
START_SECONDS = 30.0
_NODE_SECONDS = 0.05
"""What is allowed for each node on top: a thousand of them take a busy machine a while."""
STOP_SECONDS = 20.0
_POLL_SECONDS = 0.02
_TELL_SECONDS = 0.2
"""How often whoever waits for a start is told so."""


Waiting = Callable[[float], None]
"""Told again and again for how many seconds we have been waiting."""


def start(cluster: ClusterDirectory, shape: Shape, waiting: Waiting | None = None) -> Record:
    """Start the cluster's process and wait until it says that it is ready."""
    cluster.write(Record(shape))
    patience = START_SECONDS + shape.nodes * _NODE_SECONDS
    reader, writer = os.pipe()
    try:
        pid = _spawn(cluster, writer)
    finally:
        os.close(writer)
    record = None
    try:
        record = _read_line(reader, patience, waiting)
    except TimeoutError:
        raise DeadlineExceeded(
            f'cluster "{cluster.name}" was not ready after {patience:g} s',
            hint=f"read its log: {cluster.log}",
        ) from None
    finally:
        os.close(reader)
        if record is None:  # given up, by Ctrl-C perhaps: nothing half started stays behind
            _end(cluster, pid)
    if not record:
        os.waitpid(pid, 0)
        raise KvestigateError(
            f'cluster "{cluster.name}" did not start: {_last_line(cluster.log)}',
            hint=f"read its log: {cluster.log}",
        )
    return msgspec.json.decode(record, type=Record)


def stop(cluster: ClusterDirectory) -> bool:
    """Stop the cluster's process, pods and all; False if it did not run."""
    if not cluster.is_running():
        return False
    _end(cluster, cluster.read().pid)
    return True


@dataclass(frozen=True, slots=True)
class Stray:
    """A process of a cluster that no command finds, as its state directory is gone."""

    pid: int
    directory: str


def strays(processes: Path = Path("/proc")) -> list[Stray]:
    """Strays of this user."""
    found = []
    for path in processes.iterdir() if processes.is_dir() else ():
        if not path.name.isdecimal():
            continue
        try:
            words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
            mine = path.stat().st_uid == os.getuid()
        except OSError:
            continue  # it has ended
        if not mine or words[1:3] != ["-m", DAEMON] or not "".join(words[3:4]):
            continue
        if not Path(words[3], "cluster.json").exists():
            found.append(Stray(int(path.name), words[3]))
    return sorted(found, key=lambda stray: stray.pid)


def _end(cluster: ClusterDirectory, pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while cluster.is_running():
        if time.monotonic() > deadline:
            raise DeadlineExceeded(
                f'cluster "{cluster.name}" did not stop within {STOP_SECONDS:g} s',
                hint=f"read its log: {cluster.log}",
            )
        # Often not our child, so there is nothing to wait on: the lock is the only sign.
        time.sleep(_POLL_SECONDS)


def _spawn(cluster: ClusterDirectory, ready: int) -> int:
    """The pid of the cluster's process, in a session of its own: it outlives us."""
    os.set_inheritable(ready, True)
    log = private_file(cluster.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    arguments = ["-m", DAEMON, str(cluster.path), str(ready)]
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, *arguments],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(log)


def _read_line(descriptor: int, seconds: float, waiting: Waiting | None) -> bytes:
    """What is said before the other end closes, up to a newline."""
    began = time.monotonic()
    line = b""
    while not line.endswith(b"\n"):
        waited = time.monotonic() - began
        if waited > seconds:
            raise TimeoutError
        if waiting is not None:
            waiting(waited)
        if not select.select([descriptor], [], [], _TELL_SECONDS)[0]:
            continue
        chunk = os.read(descriptor, 4096)
        if not chunk:
            return b""
        line += chunk
    return line


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "its log is empty"
