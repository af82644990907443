"""A container of the namespace host, and how it is ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kvestigate.cluster.node.hosts import cgroups, shim
from kvestigate.cluster.node.hosts.interface import Ending
from kvestigate.cluster.node.hosts.process import ShimProcess
from kvestigate.cluster.node.hosts.processes import MARK, children, descendants, kill, marked


class NamespaceProcess(ShimProcess):
    """A container: a shim outside, and inside a shell that is the first process of its own."""

    own_files = True

    def __init__(
        self,
        directory: Path,
        kept: shim.Kept,
        *,
        now: Callable[[], float],
        groups: cgroups.Cgroups | None,
        terminal: int | None = None,
    ) -> None:
        super().__init__(directory, kept, now=now, terminal=terminal)
        self._groups = groups

    def first_pid(self) -> int | None:
        """The container's own first process, as the machine numbers it."""
        return self._below(3)

    def command_pid(self) -> int | None:
        return self._below(4)

    def kill(self) -> None:
        """End the command: the first process then ends with its exit code, and with that one
        all others of the pid namespace."""
        if self.shim_pid is None or self.ended.done():
            return
        command = self.command_pid()
        if command is None or self._shares_pids:
            for pid in descendants(self.shim_pid)[1:]:
                kill(pid)
        else:
            kill(command)

    def sweep(self) -> None:
        """What left its parents in a namespace that others share ends with its container."""
        if not self.kept.extra.get("shared_pids"):
            return
        if self._groups is not None:
            left = self._groups.members(self.key.id)
        else:
            left = marked(MARK, self.kept.env[MARK])
        for pid in left:
            kill(pid)

    def ending(self, code: int) -> Ending:
        plain = super().ending(code)
        if self._groups is None:
            return plain
        spent = self._groups.ran_out_of_memory(self.key.id)
        self._groups.remove(self.key.id)
        return Ending(code, at=plain.at, out_of_memory=spent and code != 0)

    @property
    def _shares_pids(self) -> bool:
        return bool(self.kept.extra.get("host_pid") or self.kept.extra.get("shared_pids"))

    def _below(self, depth: int) -> int | None:
        """The shim's only descendant so far down: nsenter, unshare, the shell, the command."""
        pid = self.shim_pid
        for _ in range(depth):
            if pid is None:
                return None
            pid = next(iter(children(pid)), None)
        return pid
