"""Holding containers to their limits through cgroups, v1 or v2, where they are ours to make."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kvestigate.cluster.node.hosts.interface import Ceiling, Usage

_PERIOD_MICROS = 100_000


@dataclass(frozen=True, slots=True)
class Layout:
    """How a version of cgroups names its files."""

    memory_limit: str
    cpu_limit: str
    cpu_quota: str
    """What is written to limit the CPU."""
    out_of_memory: str
    memory: str
    inactive: str
    """The line of `memory.stat` with memory that could be freed."""
    cpu: str
    cpu_line: str
    """Empty where the file holds nothing but the number."""
    cpu_units: float
    """Of CPU time, in a second."""


VERSION_1 = Layout(
    "memory.limit_in_bytes", "cpu.cfs_quota_us", "{quota}", "memory.oom_control",
    "memory.usage_in_bytes", "total_inactive_file", "cpuacct.usage", "", 1e9,
)  # fmt: skip
VERSION_2 = Layout(
    "memory.max", "cpu.max", f"{{quota}} {_PERIOD_MICROS}", "memory.events",
    "memory.current", "inactive_file", "cpu.stat", "usage_usec", 1e6,
)  # fmt: skip


class Cgroups:
    """A place below which one group a container can be made.

    Version 1 has a hierarchy for each controller, version 2 one for all.
    """

    def __init__(
        self, layout: Layout, memory: Path, cpu: Path | None, accounting: Path | None
    ) -> None:
        self._layout = layout
        self._memory = memory
        self._cpu = cpu
        self._accounting = accounting
        roots = (memory, cpu, accounting)
        self._roots = list(dict.fromkeys(root for root in roots if root is not None))

    def make(self, name: str, ceiling: Ceiling) -> list[Path]:
        """The files that a process writes its pid to, to be held to the limits."""
        for root in self._roots:
            (root / name).mkdir(parents=True, exist_ok=True)
        if ceiling.memory is not None:
            (self._memory / name / self._layout.memory_limit).write_text(str(ceiling.memory))
        if self._cpu is not None and ceiling.cpu_millis is not None:
            quota = max(ceiling.cpu_millis * _PERIOD_MICROS // 1000, 1000)
            limit = self._layout.cpu_quota.format(quota=quota)
            (self._cpu / name / self._layout.cpu_limit).write_text(limit)
        return [root / name / "cgroup.procs" for root in self._roots]

    def ran_out_of_memory(self, name: str) -> bool:
        return _counter(self._memory / name / self._layout.out_of_memory, "oom_kill") > 0

    def usage(self, name: str) -> Usage | None:
        layout, group = self._layout, self._memory / name
        try:
            memory = int((group / layout.memory).read_text())
        except (OSError, ValueError):
            return None
        inactive, cpu = _counter(group / "memory.stat", layout.inactive), 0
        if self._accounting is not None:
            cpu = _counter(self._accounting / name / layout.cpu, layout.cpu_line)
        return Usage(cpu / layout.cpu_units, max(memory - inactive, 0))

    def members(self, name: str) -> list[int]:
        """The processes in a group."""
        try:
            listed = (self._memory / name / "cgroup.procs").read_text()
        except OSError:
            return []
        return [int(line) for line in listed.split()]

    def remove(self, name: str = "") -> None:
        """Forget a group whose processes have ended; without a name, the node's own."""
        for root in self._roots:
            _remove(root / name)


def find(node: str) -> Cgroups | None:
    """The cgroups in which this process may make some for `node`; None if there are none."""
    mounted = _mounts()
    own = _own_groups()
    if "memory" in mounted:
        memory = _usable(mounted["memory"], own.get("memory", "/"), node)
        if memory is not None:
            cpu = _usable(mounted.get("cpu"), own.get("cpu", "/"), node)
            accounting = _usable(mounted.get("cpuacct"), own.get("cpuacct", "/"), node)
            return Cgroups(VERSION_1, memory, cpu, accounting)
        return None
    if "" in mounted:
        return _version2(mounted[""] / own.get("", "/").lstrip("/"), node)
    return None


def _version2(parent: Path, node: str) -> Cgroups | None:
    """Groups need their controllers handed down, which a parent with processes cannot do."""
    root = parent / "kvestigate" / node
    try:
        root.mkdir(parents=True, exist_ok=True)
        for group in (parent, root.parent, root):
            (group / "cgroup.subtree_control").write_text("+memory +cpu")
    except OSError:
        return None
    return Cgroups(VERSION_2, root, root, root)


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
    """A number of a file: that of the line with this name, or without a name the only one."""
    try:
        lines = [line.rpartition(" ") for line in path.read_text().splitlines()]
    except OSError:
        return 0
    return next((int(value) for line, _, value in lines if line == name), 0)


def _remove(group: Path) -> None:
    """With the groups in it: some processes were still on their way out when theirs was."""
    try:
        for inner in group.iterdir():
            if inner.is_dir():
                _remove(inner)
        group.rmdir()
    except OSError:
        pass  # somebody is still in it; an empty group costs nothing
