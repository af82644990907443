"""System calls of containers that wait for this process to answer: seccomp notifications. Linux.

The problem: each pod needs an address of its own, so that all can listen on `0.0.0.0:8080`, and
Services need addresses that lead somewhere; as any user, and where the kernel grants no network
namespaces. Where a socket leads is decided at `bind`, `connect` and addressed `sendto`. So it is
enough to have a say in those three calls, and no byte of data has to pass through us
(`docs/decisions/0007-pods-on-loopback.md` has what else was tried).

The way: a filter (`syscalls`) put on a process before its program starts makes the kernel stop
these calls, in it and in everything it starts, and report each on a descriptor. `Gate` puts the
filter on between fork and exec and hands the descriptor to us over a socket pair; `net.warden`
reads a `Notice`, looks up what the caller means, does the call on the caller's own socket
(`descriptor_of`) and answers with the result, or lets the kernel proceed.

What is easy to get wrong:

- The caller may be killed while we look, and its pid be another's. Whatever was read by pid counts
  only if `still_waits` says afterwards that the notice is still good.
- A signal would restart a call that we have done already, so `_WAIT_KILLABLE` is asked for, where
  the kernel knows it.
- Without privileges a filter needs `no_new_privs`. Where Yama lets only parents look into
  processes, `PR_SET_PTRACER` lets the next agent in.
- When an agent dies, calls must wait for the next one instead of failing: the shim of a container
  keeps the descriptor open, as number `KEPT`.
- Whether all this is allowed depends on who filters already, so `obstacle` does not look at
  versions: it tries it once.
"""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType

from kvestigate.cluster.node.hosts import syscalls
from kvestigate.cluster.node.hosts.interface import Network
from kvestigate.cluster.node.hosts.machine import can_mount

KEPT = 9
"""The number under which a shim keeps the descriptor for the next agent: a shell can close it
for the command, as it could no number of two digits."""

_SET_FILTER, _GET_SIZES = 1, 3
_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5
_NO_NEW_PRIVILEGES = 38
_SET_PTRACER = 0x59616D61
_PIDFD_GETFD = 438
# `struct seccomp_notif` is 80 bytes long, its answer 24.
_NOTICE, _ANSWER, _DATA = 80, 24, 64
_RECEIVE, _SEND, _VALID = 0xC0502100, 0xC0182101, 0x40082102
_CONTINUE = 1


@dataclass(frozen=True, slots=True)
class Notice:
    """A system call that waits."""

    id: int
    pid: int
    """The thread, as this process numbers it."""
    number: int
    arguments: tuple[int, int, int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


class _Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class Gate:
    """Between a process that is started and the one that starts it.

    `close_in` runs in the new process before its program does; afterwards `listener` is here.
    """

    def __init__(self, *, keep: bool) -> None:
        """`keep`: the new process holds the descriptor too, as number `KEPT`."""
        numbers = syscalls.numbers()
        assert numbers is not None
        self._calls = numbers
        self._keep = keep
        if keep:
            _reserve(KEPT)
        self._here, self._there = socket.socketpair()
        self._privileged = _may_filter()

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._here.close()
        self._there.close()

    def close_in(self) -> None:
        """In the new process: put the filter on and hand the descriptor over."""
        if not self._privileged:
            # Without it only root may filter; with it no setuid program gains anything.
            _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
            # Where only parents may look into processes (Yama), the next agent may still take
            # the descriptor from the shim. Elsewhere the kernel knows no such call.
            _libc().prctl(_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
        listener = _install(self._calls)
        message = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))]
        self._there.sendmsg([b"\0"], message)
        if self._keep:
            os.dup2(listener, KEPT, inheritable=True)

    def listener(self) -> int:
        """What the new process handed over before it began."""
        _, descriptors, _, _ = socket.recv_fds(self._here, 1, 1)
        (listener,) = descriptors
        os.set_inheritable(listener, False)
        return listener


@contextmanager
def gated(
    network: Network | None, *, keep: bool, own_files: bool
) -> Iterator[Callable[[], None] | None]:
    """What a new process has to run first, if anything; `network` then answers its calls."""
    if network is None:
        yield None
        return
    with Gate(keep=keep) as gate:
        yield gate.close_in
        network.guard(gate.listener(), own_files=own_files)


def _install(numbers: syscalls.Numbers) -> int:
    steps = syscalls.program(numbers)
    program = _Program(len(steps) // 8, steps)
    # A signal must not undo a call that we are doing: it would be done twice.
    for flags in (_LISTENER | _WAIT_KILLABLE, _LISTENER):
        listener = int(_libc().syscall(numbers.seccomp, _SET_FILTER, flags, ctypes.byref(program)))
        if listener >= 0:
            return listener
        if ctypes.get_errno() != errno.EINVAL:
            break
    raise _failure("seccomp")


@cache
def _may_filter() -> bool:
    return can_mount()


def _reserve(number: int) -> None:
    """See that `number` is open here, so that nothing else gets it in the new process."""
    try:
        fcntl.fcntl(number, fcntl.F_GETFD)
    except OSError:
        empty = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        if empty != number:
            os.dup2(empty, number, inheritable=False)
            os.close(empty)


# Answering.


def receive(listener: int) -> Notice | None:
    """The next call that waits; None when it was given up meanwhile. EOFError: none will come."""
    notice = bytearray(_NOTICE)
    try:
        fcntl.ioctl(listener, _RECEIVE, notice, True)
    except OSError as failure:
        if failure.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    info, pid, _, number, _, _, *arguments = struct.unpack("=QIIiIQ6Q", notice)
    return Notice(info, pid, number, tuple(arguments))


def proceed(listener: int, notice: Notice) -> None:
    """Let the kernel do the call as it was made."""
    _answer(listener, struct.pack("=QqiI", notice.id, 0, 0, _CONTINUE))


def answer(listener: int, notice: Notice, result: int) -> None:
    """The call's result: a number, or the negative of an errno."""
    value, error = (result, 0) if result >= 0 else (0, result)
    _answer(listener, struct.pack("=QqiI", notice.id, value, error, 0))


def _answer(listener: int, content: bytes) -> None:
    try:
        fcntl.ioctl(listener, _SEND, bytearray(content), True)
    except OSError as failure:
        if failure.errno != errno.ENOENT:  # the caller was killed meanwhile
            raise


def still_waits(listener: int, notice: Notice) -> bool:
    """Whether the call was not given up: else its pid may be somebody else's by now."""
    try:
        fcntl.ioctl(listener, _VALID, struct.pack("=Q", notice.id))
    except OSError:
        return False
    return True


def memory(pid: int, address: int, length: int) -> bytes:
    """A piece of another process's memory."""
    content = ctypes.create_string_buffer(length)
    here = _Piece(ctypes.cast(content, ctypes.c_void_p).value, length)
    there = _Piece(address, length)
    libc = _libc()
    read = libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    if read < 0:
        raise _failure("process_vm_readv")
    return content.raw[:read]


def descriptor_of(pid: int, number: int) -> int:
    """A copy of another process's descriptor."""
    process = os.pidfd_open(_leader(pid))
    try:
        copied = int(_libc().syscall(_PIDFD_GETFD, process, number, 0))
    finally:
        os.close(process)
    if copied < 0:
        raise _failure("pidfd_getfd")
    return copied


def _leader(pid: int) -> int:
    """The process that a thread belongs to."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("Tgid:")]
    return int(line.split()[1])


def _failure(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")


# Whether it can be done here.


@cache
def obstacle() -> str:
    """Why pods can have no network of their own on this machine; empty when they can.

    Asked by doing: inside containers the kernel's answer depends on who filters already.
    """
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return "this system has no seccomp user notifications"
    if syscalls.numbers() is None:
        return f"the architecture {os.uname().machine} is not supported"
    sizes = struct.pack("=HHH", 0, 0, 0)
    buffer = ctypes.create_string_buffer(sizes, len(sizes))
    numbers = syscalls.numbers()
    assert numbers is not None
    if _libc().syscall(numbers.seccomp, _GET_SIZES, 0, buffer) != 0:
        return "this kernel has no seccomp user notifications"
    if struct.unpack("=HHH", buffer.raw) != (_NOTICE, _ANSWER, _DATA):
        return "the format of this kernel's seccomp notifications is unknown"
    return _try()


def _try() -> str:
    try:
        with Gate(keep=False) as gate:
            child = subprocess.Popen(
                ["/bin/cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                preexec_fn=gate.close_in,
            )
            try:
                os.close(gate.listener())
                os.close(descriptor_of(child.pid, 0))
            finally:
                child.communicate()
    except (OSError, subprocess.SubprocessError, BlockingIOError) as failure:
        return f"the kernel refuses seccomp user notifications: {failure}"
    return ""
