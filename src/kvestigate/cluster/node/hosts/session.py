"""A command inside a container whose streams belong to the caller: exec, probes, hooks."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kvestigate.cluster.node.hosts.endings import on_exit
from kvestigate.cluster.node.hosts.interface import Ending, Network, cannot_start
from kvestigate.cluster.node.hosts.logs import STDERR, STDOUT
from kvestigate.cluster.node.hosts.seccomp import gated
from kvestigate.cluster.node.hosts.terminal import in_turn, set_window

_PIECE = 32 * 1024
_AHEAD = 16
"""Pieces that are read before the caller has taken the first."""


class PipedSession:
    """One command on pipes, or on a terminal."""

    def __init__(self, *, terminal: int | None = None) -> None:
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._terminal = terminal
        self._child: subprocess.Popen[bytes] | None = None
        self._outputs: dict[int, str] = {}
        self._input: int | None = None
        self._pieces: deque[tuple[str, bytes]] = deque()
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._stop_waiting: Callable[[], None] = lambda: None

    def begin(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None,
        stdin: bool,
        slave: int | None = None,
        user: int | None = None,
        preexec: Callable[[], None] | None = None,
        network: Network | None = None,
        own_files: bool = False,
    ) -> None:
        """Start the command, with streams that belong to `user`; `LaunchFailed` if it cannot be.

        `slave` is the command's end of the terminal, and is closed here.
        """
        give = None if user is None else partial(_give_streams, user)
        try:
            with gated(network, keep=False, own_files=own_files) as close_gate:
                first = in_turn(give, preexec, close_gate)
                self._spawn(argv, env, cwd, stdin=stdin, slave=slave, preexec=first)
        except (OSError, ValueError) as failure:
            if self._terminal is not None:
                os.close(self._terminal)
            raise cannot_start(failure) from failure
        finally:
            if slave is not None:
                os.close(slave)

    def _spawn(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        *,
        stdin: bool,
        slave: int | None,
        preexec: Callable[[], None] | None,
    ) -> None:
        piped = subprocess.PIPE
        if slave is not None:
            self._child = subprocess.Popen(
                argv, env=dict(env), cwd=cwd, stdin=slave, stdout=slave, stderr=slave,
                start_new_session=True, preexec_fn=preexec,
            )  # fmt: skip
            assert self._terminal is not None
            self._outputs[self._terminal] = STDOUT
            self._input = self._terminal
        else:
            self._child = subprocess.Popen(
                argv, env=dict(env), cwd=cwd, stdin=piped if stdin else subprocess.DEVNULL,
                stdout=piped, stderr=piped, start_new_session=True, preexec_fn=preexec,
            )  # fmt: skip
            assert self._child.stdout is not None
            assert self._child.stderr is not None
            self._outputs[os.dup(self._child.stdout.fileno())] = STDOUT
            self._outputs[os.dup(self._child.stderr.fileno())] = STDERR
            if self._child.stdin is not None:
                self._input = os.dup(self._child.stdin.fileno())
            for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
                if pipe is not None:
                    pipe.close()
        for descriptor in (*self._outputs, self._input):
            if descriptor is not None:
                os.set_blocking(descriptor, False)
        self._resume()
        self._stop_waiting = on_exit(self._child.pid, self._exited)

    # Session.

    async def read(self) -> tuple[str, bytes] | None:
        while not self._pieces:
            if not self._outputs:
                return None
            self._waiter = self._loop.create_future()
            await self._waiter
        piece = self._pieces.popleft()
        if self._paused and len(self._pieces) < _AHEAD:
            self._resume()
        return piece

    async def write(self, data: bytes) -> None:
        while data and self._input is not None:
            try:
                data = data[os.write(self._input, data) :]
            except BlockingIOError:
                await self._writable(self._input)
            except OSError:
                return  # the command reads no more

    def close_stdin(self) -> None:
        if self._input is not None and self._input != self._terminal:
            self._loop.remove_writer(self._input)
            os.close(self._input)
            self._input = None

    def resize(self, width: int, height: int) -> None:
        if self._terminal is not None and self._terminal in self._outputs:
            set_window(self._terminal, width, height)

    async def aclose(self) -> None:
        self.close_stdin()
        for descriptor in list(self._outputs):
            self._close_output(descriptor)
        if self._child is not None and not self.ended.done():
            try:
                os.killpg(self._child.pid, signal.SIGHUP)
            except ProcessLookupError:
                pass

    def kill(self) -> None:
        if self._child is not None and not self.ended.done():
            try:
                os.killpg(self._child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # Reading and ending.

    def _resume(self) -> None:
        self._paused = False
        for descriptor in self._outputs:
            self._loop.add_reader(descriptor, self._take, descriptor)

    def _take(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # how a terminal says that its other end is closed
        if data:
            self._pieces.append((self._outputs[descriptor], data))
            if len(self._pieces) >= _AHEAD:
                self._paused = True
                for output in self._outputs:
                    self._loop.remove_reader(output)
        else:
            self._close_output(descriptor)
        self._wake()

    def _close_output(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        if self._outputs.pop(descriptor, None) is not None:
            if descriptor == self._input:
                self._input = None
            os.close(descriptor)

    def _exited(self) -> None:
        assert self._child is not None
        code = self._child.wait()
        if not self.ended.done():
            self.ended.set_result(Ending(code if code >= 0 else 128 - code))
        # A process that the command left behind may hold the pipes open: what is in them now
        # is all that the caller waits for.
        for descriptor in list(self._outputs):
            self._drain(descriptor)
            self._close_output(descriptor)
        self._wake()

    def _drain(self, descriptor: int) -> None:
        try:
            while data := os.read(descriptor, _PIECE):
                self._pieces.append((self._outputs[descriptor], data))
        except OSError:
            pass  # empty

    async def _writable(self, descriptor: int) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(descriptor, _settle, ready)
        try:
            await ready
        finally:
            self._loop.remove_writer(descriptor)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _give_streams(user: int) -> None:
    """Let a command open `/dev/stdout` anew; what is everybody's stays so."""
    for descriptor in range(3):
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode) or os.isatty(descriptor):
            os.fchown(descriptor, user, -1)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
