"""Terminals of another mount namespace, and of a process that holds one for us. Linux."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct

# Not in every Python's termios.
_TIOCGPTPEER = 0x5441
_TIOCSPTLCK = 0x40045431
_PIDFD_GETFD = 438


def open_pair(ptmx: str) -> tuple[int, int]:
    """Both ends of a new terminal of the devpts that `ptmx` belongs to."""
    master = os.open(ptmx, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
        slave = fcntl.ioctl(master, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        os.close(master)
        raise
    return master, slave


def descriptor_of(pid: int, number: int) -> int | None:
    """A copy of another process's descriptor; None where the kernel has no such call."""
    libc = ctypes.CDLL(None, use_errno=True)
    process = os.pidfd_open(pid)
    try:
        copied = int(libc.syscall(_PIDFD_GETFD, process, number, 0))
    finally:
        os.close(process)
    return copied if copied >= 0 else None
