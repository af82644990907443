"""A container's run behind a shim, seen from the agent: its pipes, its log and its end."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kvestigate.cluster.node.hosts import seccomp, shim
from kvestigate.cluster.node.hosts.endings import on_exit
from kvestigate.cluster.node.hosts.interface import (
    Ending,
    LaunchFailed,
    Network,
    RunKey,
    cannot_start,
)
from kvestigate.cluster.node.hosts.logs import STDERR, STDOUT, LogFile, LogQuery
from kvestigate.cluster.node.hosts.terminal import set_window

_log = logging.getLogger(__name__)
_PIECE = 64 * 1024
# For reading and writing: such an open never blocks, and the pipe has no end of file.
_FLAGS = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
KILLED = 137
"""The exit code of what was killed before anybody could record one."""


class ShimProcess:
    """One run. The subclass of a host says how to reach its command."""

    own_files = False
    """Whether the container has an `/etc` of its own."""

    def __init__(
        self,
        directory: Path,
        kept: shim.Kept,
        *,
        now: Callable[[], float],
        terminal: int | None = None,
    ) -> None:
        self.key = RunKey(kept.pod_uid, kept.container, kept.attempt)
        self.directory = directory
        self.kept = kept
        self.log = LogFile(directory / "log", now=now)
        self.env = kept.env
        self.started_at = kept.started_at
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.shim_pid: int | None = None
        self.network: Network | None = None
        self._now = now
        self._child: subprocess.Popen[bytes] | None = None
        self._terminal = terminal
        self._stop_waiting: Callable[[], None] = lambda: None
        self._readers: dict[int, str] = {}
        self._input: int | None = None
        self._words = self._goodbye = -1
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # Beginning.

    def spawn(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        cwd: str,
        slave: int | None = None,
        network: Network | None = None,
    ) -> None:
        """Start the shim; `LaunchFailed` if the machine starts no such process.

        `slave` is the command's end of the terminal, and is closed here.
        """
        self.network = network
        self.open_pipes()
        try:
            if slave is not None and self.kept.user is not None:
                os.fchown(slave, self.kept.user, -1)
            self._child = shim.spawn(
                self.directory, program, arguments, env=self.kept.env, cwd=cwd,
                keep=() if self._terminal is None else (self._terminal,), tty=slave,
                network=network, own_files=self.own_files,
            )  # fmt: skip
        except (OSError, ValueError) as failure:
            self.detach()
            raise cannot_start(failure) from failure
        finally:
            if slave is not None:
                os.close(slave)

    async def begin(self) -> None:
        """Follow the shim that was just started; returns when its command can be signalled.

        `LaunchFailed` when the shim ended before: what stood before the command failed.
        """
        assert self._child is not None
        self._follow(self._child.pid)
        either: set[asyncio.Future[Any]] = {self._begun, self.ended}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._begun.done():
            raise LaunchFailed("ContainerCannotRun", await self._complaint())

    async def _complaint(self) -> str:
        lines = b"".join([piece async for piece in self.log.read(LogQuery(tail=5))])
        return lines.decode(errors="replace").strip() or "the container could not be set up"

    def resume(self) -> None:
        """Follow the shim of an earlier agent, or learn how the run ended meanwhile."""
        pid = shim.shim_pid_of(self.directory)
        self.open_pipes()
        if pid is None:
            self._close()
            return
        self._follow(pid)
        if shim.exit_code_of(self.directory) is not None:
            self._finish()

    def open_pipes(self) -> None:
        """Open our ends of the pipes, before the shim starts: it writes to them at once."""
        self._words = os.open(self.directory / "ready", _FLAGS)
        self._goodbye = os.open(self.directory / "done", _FLAGS)
        if self._terminal is not None:
            os.set_blocking(self._terminal, False)
            self._readers[self._terminal] = STDOUT
            self._input = self._terminal
            return
        for name, stream in (("out", STDOUT), ("err", STDERR)):
            self._readers[os.open(self.directory / name, _FLAGS)] = stream
        if self.kept.stdin:
            self._input = os.open(self.directory / "in", _FLAGS)

    def _follow(self, pid: int) -> None:
        self.shim_pid = pid
        loop = asyncio.get_running_loop()
        for descriptor in self._readers:
            loop.add_reader(descriptor, self._take, descriptor)
        loop.add_reader(self._words, self._hear)
        self._stop_waiting = on_exit(pid, self._close)

    def _hear(self) -> None:
        """The shim says a word when the command begins, and one when it has ended."""
        try:
            words = os.read(self._words, _PIECE).split()
        except BlockingIOError:
            return
        if shim.BEGUN in words and not self._begun.done():
            self._begun.set_result(None)
        if shim.ENDED in words:
            self._finish()

    def join(self, network: Network) -> None:
        """Let the pod's network answer for a run of an earlier agent, which ran in one too."""
        if self.shim_pid is None or not self.kept.network:
            return
        try:
            listener = seccomp.descriptor_of(self.shim_pid, seccomp.KEPT)
        except OSError as failure:
            _log.warning("%s has lost its network: %s", self.key.id, failure)
            return
        network.guard(listener, own_files=self.own_files)
        self.network = network

    # Process.

    def signal(self, number: int) -> None:
        pid = self.command_pid()
        if pid is not None and not self.ended.done():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass  # it ended on its own in this moment

    def kill(self) -> None:
        raise NotImplementedError

    def command_pid(self) -> int | None:
        return shim.command_pid_of(self.directory)

    def write_stdin(self, data: bytes) -> None:
        if self._input is not None:
            try:
                os.write(self._input, data)
            except BlockingIOError:
                pass  # a container that does not read its input loses what it has no room for

    def close_stdin(self) -> None:
        if self._input is not None and self._terminal is None:
            os.close(self._input)
            self._input = None

    def resize(self, width: int, height: int) -> None:
        if self._terminal is not None:
            set_window(self._terminal, width, height)

    def detach(self) -> None:
        """Stop following, leaving the run as it is."""
        self._stop_waiting()
        self._close_pipes()
        self.log.end()
        if self._child is not None:
            # It is somebody else's to reap from now on: init's, once this process ends.
            self._child.returncode = 0

    # Ending.

    def _take(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # a terminal whose other end is closed
        if data:
            self.log.write(self._readers[descriptor], data)
        else:
            asyncio.get_running_loop().remove_reader(descriptor)

    def _finish(self) -> None:
        """The command has ended: take its last output, then let the shim go."""
        self._drain()
        os.write(self._goodbye, b"\n")

    def _close(self) -> None:
        """The shim is gone, and with it the run."""
        if self._child is not None:
            self._child.wait()
        self.sweep()
        self._drain()
        self._close_pipes()
        self.log.end()
        code = shim.exit_code_of(self.directory)
        if not self.ended.done():
            self.ended.set_result(self.ending(KILLED if code is None else code))

    def ending(self, code: int) -> Ending:
        return Ending(code, at=self._ended_at(), out_of_memory=False)

    def sweep(self) -> None:
        """End what the command left behind."""

    def _ended_at(self) -> float:
        try:
            return (self.directory / "exit").stat().st_mtime
        except FileNotFoundError:
            return self._now()

    def _drain(self) -> None:
        for descriptor, stream in self._readers.items():
            try:
                while data := os.read(descriptor, _PIECE):
                    self.log.write(stream, data)
            except OSError:
                pass  # empty

    def _close_pipes(self) -> None:
        loop = asyncio.get_running_loop()
        self.close_stdin()
        for descriptor in self._readers:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        self._readers.clear()
        loop.remove_reader(self._words)
        for descriptor in (self._words, self._goodbye):
            os.close(descriptor)
