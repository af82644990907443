"""Finding processes by the mark in their environment, ending them, and what they use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from kvestigate.cluster.node.hosts.interface import Usage

MARK = "KVESTIGATE_CONTAINER"
"""The variable by which a container's processes are known, wherever they went."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def marked(name: str, value: str) -> list[int]:
    """The processes that were started with `name=value`, and their children."""
    wanted = f"{name}={value}"
    if sys.platform != "linux":
        return _marked_by_ps(wanted)
    pids: list[int] = []
    needle = wanted.encode() + b"\0"
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environ = (entry / "environ").read_bytes()
            except OSError:
                continue  # it ended, or is not ours
            if environ.startswith(needle) or b"\0" + needle in environ:
                pids.append(int(entry.name))
    return pids


def _marked_by_ps(wanted: str) -> list[int]:
    listed = subprocess.run(
        ["ps", "axeww", "-o", "pid=,command="], capture_output=True, text=True, check=False
    )
    lines = (line.split(None, 1) for line in listed.stdout.splitlines())
    return [int(line[0]) for line in lines if len(line) > 1 and f" {wanted} " in f"{line[1]} "]


def children(pid: int) -> list[int]:
    """Linux only."""
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    """`pid` and all below it."""
    pids = [pid]
    for parent in pids:
        pids += children(parent)
    return pids


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # it has ended, or its number is somebody else's by now


def usage_of(pids: Iterable[int]) -> Usage:
    """What processes use together."""
    known = list(pids)
    return Usage(sum(map(_cpu_seconds, known)), sum(map(_resident_bytes, known)))


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0
