"""First processes of pid namespaces: made once, and found again by the next agent. Linux."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kvestigate.cluster.node.hosts import shim
from kvestigate.cluster.node.hosts.interface import LaunchFailed
from kvestigate.cluster.node.hosts.processes import children, kill

_SECONDS = 30.0
# It reaps what is left behind, and reports when there is a namespace to enter.
_WAIT = "echo ready; exec env --ignore-signal=CHLD sleep infinity </dev/null >/dev/null 2>&1"


class _First(msgspec.Struct):
    pid: int
    stat: str
    """`/proc/PID/stat` at the start: the pid alone may belong to another process later."""


def remember(path: Path, pid: int) -> None:
    kept = _First(pid, Path(f"/proc/{pid}/stat").read_text())
    path.write_bytes(msgspec.json.encode(kept))


def recall(path: Path) -> int | None:
    """The process that was written down, if it still runs."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_First)
        stat = Path(f"/proc/{kept.pid}/stat").read_text()
    except (OSError, msgspec.DecodeError):
        return None
    same = shim.start_time(stat) == shim.start_time(kept.stat) and shim.state(stat) != "Z"
    return kept.pid if same else None


class Sandboxes:
    """The pid namespaces that containers of one pod share; `root` has a directory for each pod."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._parents: dict[str, subprocess.Popen[bytes]] = {}
        """What started a first process and waits for it."""

    async def enter(self, pod_uid: str, into_node: Sequence[str], env: Mapping[str, str]) -> int:
        """The pod's first process; `into_node` are the words that run a command on the node."""
        path = self._path(pod_uid)
        first = recall(path)
        if first is not None:
            return first
        path.parent.mkdir(parents=True, exist_ok=True)
        parent = _spawn([*into_node, "unshare", "--pid", "--fork", "/bin/sh", "-c", _WAIT], env)
        assert parent.stdout is not None
        with parent.stdout as pipe:
            line = await asyncio.wait_for(asyncio.to_thread(pipe.readline), _SECONDS)
        if line.strip() != b"ready":
            parent.wait()
            raise LaunchFailed(
                "ContainerCannotRun", "cannot create the process namespace that the pod shares"
            )
        (inner,) = children(parent.pid)
        (first,) = children(inner)
        remember(path, first)
        self._parents[pod_uid] = parent
        return first

    async def end(self, pod_uid: str) -> None:
        """End the pod's first process, and with it all processes of its namespace."""
        first = recall(self._path(pod_uid))
        if first is not None:
            kill(first)
        parent = self._parents.pop(pod_uid, None)
        if parent is not None:
            await asyncio.to_thread(parent.wait)

    def release(self) -> None:
        """They outlive us: init will reap them."""
        for parent in self._parents.values():
            parent.returncode = 0

    def reap(self) -> None:
        """After the node's own first process is gone, and with it all of them."""
        for parent in self._parents.values():
            parent.wait()

    def _path(self, pod_uid: str) -> Path:
        return self._root / pod_uid / "sandbox.json"


def _spawn(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
