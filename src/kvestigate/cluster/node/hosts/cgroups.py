"""Holding containers to their limits through cgroups, v1 or v2, where they are ours to make."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from kvestigate.cluster.node.hosts.interface import Ceiling, Usage

_PERIOD_MICROS = 100_000


class Cgroups(Protocol):
    """A place below which one group a container can be made."""

    def make(self, name: str, ceiling: Ceiling) -> list[Path]:
        """The files that a process writes its pid to, to be held to the limits."""

    def ran_out_of_memory(self, name: str) -> bool: ...

    def usage(self, name: str) -> Usage | None: ...

    def members(self, name: str) -> list[int]:
        """The processes in it."""

    def remove(self, name: str = "") -> None:
        """Forget a group whose processes have ended; without a name, the node's own."""


class Version1:
    """A hierarchy for each controller."""

    def __init__(self, memory: Path, cpu: Path | None, accounting: Path | None) -> None:
        self._memory = memory
        self._cpu = cpu
        self._accounting = accounting

    def make(self, name: str, ceiling: Ceiling) -> list[Path]:
        group = self._memory / name
        group.mkdir(parents=True, exist_ok=True)
        if ceiling.memory is not None:
            (group / "memory.limit_in_bytes").write_text(str(ceiling.memory))
        joined = [group]
        if self._cpu is not None:
            cpu = self._cpu / name
            cpu.mkdir(parents=True, exist_ok=True)
            if ceiling.cpu_millis is not None:
                quota = max(ceiling.cpu_millis * _PERIOD_MICROS // 1000, 1000)
                (cpu / "cpu.cfs_quota_us").write_text(str(quota))
            joined.append(cpu)
        if self._accounting is not None:
            accounting = self._accounting / name
            accounting.mkdir(parents=True, exist_ok=True)
            joined.append(accounting)
        return [directory / "cgroup.procs" for directory in joined]

    def ran_out_of_memory(self, name: str) -> bool:
        return _counter(self._memory / name / "memory.oom_control", "oom_kill") > 0

    def usage(self, name: str) -> Usage | None:
        try:
            memory = int((self._memory / name / "memory.usage_in_bytes").read_text())
            inactive = _counter(self._memory / name / "memory.stat", "total_inactive_file")
            nanos = 0
            if self._accounting is not None:
                nanos = int((self._accounting / name / "cpuacct.usage").read_text())
        except (OSError, ValueError):
            return None
        return Usage(nanos / 1e9, max(memory - inactive, 0))

    def members(self, name: str) -> list[int]:
        return _members(self._memory / name)

    def remove(self, name: str = "") -> None:
        for root in (self._memory, self._cpu, self._accounting):
            if root is not None:
                _remove(root / name)


class Version2:
    """One hierarchy for all controllers."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def make(self, name: str, ceiling: Ceiling) -> list[Path]:
        group = self._root / name
        group.mkdir(parents=True, exist_ok=True)
        if ceiling.memory is not None:
            (group / "memory.max").write_text(str(ceiling.memory))
        if ceiling.cpu_millis is not None:
            quota = max(ceiling.cpu_millis * _PERIOD_MICROS // 1000, 1000)
            (group / "cpu.max").write_text(f"{quota} {_PERIOD_MICROS}")
        return [group / "cgroup.procs"]

    def ran_out_of_memory(self, name: str) -> bool:
        return _counter(self._root / name / "memory.events", "oom_kill") > 0

    def usage(self, name: str) -> Usage | None:
        try:
            memory = int((self._root / name / "memory.current").read_text())
        except (OSError, ValueError):
            return None
        inactive = _counter(self._root / name / "memory.stat", "inactive_file")
        micros = _counter(self._root / name / "cpu.stat", "usage_usec")
        return Usage(micros / 1e6, max(memory - inactive, 0))

    def members(self, name: str) -> list[int]:
        return _members(self._root / name)

    def remove(self, name: str = "") -> None:
        _remove(self._root / name)


def find(node: str) -> Cgroups | None:
    """The cgroups in which this process may make some for `node`; None if there are none."""
    mounted = _mounts()
    own = _own_groups()
    if "memory" in mounted:
        memory = _usable(mounted["memory"], own.get("memory", "/"), node)
        if memory is not None:
            cpu = _usable(mounted.get("cpu"), own.get("cpu", "/"), node)
            accounting = _usable(mounted.get("cpuacct"), own.get("cpuacct", "/"), node)
            return Version1(memory, cpu, None if accounting == cpu else accounting)
        return None
    if "" in mounted:
        return _version2(mounted[""] / own.get("", "/").lstrip("/"), node)
    return None


def _version2(parent: Path, node: str) -> Version2 | None:
    """Groups need their controllers handed down, which a parent with processes cannot do."""
    root = parent / "kvestigate" / node
    try:
        root.mkdir(parents=True, exist_ok=True)
        for group in (parent, root.parent, root):
            (group / "cgroup.subtree_control").write_text("+memory +cpu")
    except OSError:
        return None
    return Version2(root)


def _usable(mount: Path | None, own: str, node: str) -> Path | None:
    if mount is None:
        return None
    root = mount / own.lstrip("/") / "kvestigate" / node
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return root if os.access(root, os.W_OK) else None


def _mounts() -> dict[str, Path]:
    """Controller -> where its hierarchy is mounted; the unified one is under the empty name."""
    mounts: dict[str, Path] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        where = Path(before.split()[4])
        if kind == "cgroup2":
            mounts[""] = where
        elif kind == "cgroup":
            for option in options.split(","):
                mounts[option] = where
    return mounts


def _own_groups() -> dict[str, str]:
    groups: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def _counter(path: Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[0] == name), 0)


def _members(group: Path) -> list[int]:
    try:
        return [int(line) for line in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _remove(group: Path) -> None:
    """With the groups in it: some processes were still on their way out when theirs was."""
    try:
        for inner in group.iterdir():
            if inner.is_dir():
                _remove(inner)
        group.rmdir()
    except OSError:
        pass  # somebody is still in it; an empty group costs nothing
