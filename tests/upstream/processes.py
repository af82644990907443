"""One server process: its log, its end, and the promise that it never outlives us."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import SystemRandom

# Runs as the child: asks the kernel to kill it when its parent dies (even by SIGKILL), makes
# sure the parent did not die before that, and becomes the server. A `preexec_fn` could do the
# same but is not safe in a process with threads.
_TIED_TO_PARENT = """
import ctypes, os, signal, sys
parent = int(sys.argv[1])
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != parent:
    sys.exit("parent is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""
_PROBE_EVERY = 0.05
_PORTS = range(12_000, 29_000)
"""Below the ports of connections (from 32768 on Linux) and those of services (from 30000)."""

# The kernel means the parent *thread*: so all servers are children of one that never ends.
_spawner = ThreadPoolExecutor(1, thread_name_prefix="spawner")


class StartFailed(Exception):
    """A server ended or stayed unready; the message ends with the tail of its log."""


class PortTaken(StartFailed):
    """Somebody else got the port between our choosing it and the server's binding it."""


class Process:
    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def pid(self) -> int:
        assert self._popen, f"{self.name} was not started"
        return self._popen.pid

    def start(self, ready: Callable[[], bool], *, deadline: float = 120) -> None:
        """Return once `ready()`; raise `StartFailed` if it ends first or takes too long."""
        tied = [sys.executable, "-I", "-S", "-c", _TIED_TO_PARENT, str(os.getpid())]
        with self._log.open("ab") as log:
            spawning = _spawner.submit(
                subprocess.Popen,
                [*tied, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us: we stop servers in their order
            )
            self._popen = spawning.result()
        give_up = time.monotonic() + deadline
        while not ready():
            try:
                code = self._popen.wait(_PROBE_EVERY)
            except subprocess.TimeoutExpired:
                if time.monotonic() < give_up:
                    continue
                self.kill()
                raise StartFailed(self._report(f"not ready in {deadline:g} s")) from None
            taken = "address already in use" in self.tail()
            raise (PortTaken if taken else StartFailed)(self._report(f"ended with {code}"))

    def stop(self, *, grace: float = 20) -> None:
        if self._popen is None:
            return
        self._popen.terminate()
        try:
            self._popen.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait()

    def tail(self, lines: int = 30) -> str:
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def _report(self, what: str) -> str:
        return f"{self.name} {what}; the end of {self._log}:\n{self.tail()}"


def free_ports(count: int) -> list[int]:
    """Distinct loopback ports; free when this returns, and no connection will take them.

    The system would choose from those that it also gives to the near ends of connections. There
    a port may be gone before its server binds it, or while its server is being restarted; and a
    client that asks for a server which is not there yet may by chance reach itself.
    """
    with ExitStack() as sockets:
        found: list[int] = []
        for port in SystemRandom().sample(_PORTS, count + 50):
            try:
                sockets.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                break
        assert len(found) == count, "nearly all ports are taken"
        return found


def wait_until(happened: Callable[[], bool], otherwise: str, *, deadline: float = 60) -> None:
    """For what a server gives no sign of; fails with `otherwise`."""
    give_up = time.monotonic() + deadline
    while not happened():
        if time.monotonic() > give_up:
            raise TimeoutError(f"{otherwise} after {deadline:g} s")
        time.sleep(_PROBE_EVERY)
