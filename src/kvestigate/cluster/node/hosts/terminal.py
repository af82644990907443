"""Pseudo-terminals of containers: made on the node's devpts, sized, and taken by a session."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Callable

# Not in every Python's termios.
_TIOCGPTPEER = 0x5441
_TIOCSPTLCK = 0x40045431


def open_pair(ptmx: str) -> tuple[int, int]:
    """Both ends of a new terminal of the devpts that `ptmx` belongs to. Linux."""
    master = os.open(ptmx, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
        slave = fcntl.ioctl(master, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        os.close(master)
        raise
    return master, slave


def set_window(terminal: int, width: int, height: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


def take_stdin() -> None:
    """In a new session: make the terminal on stdin its controlling one."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def in_turn(*steps: Callable[[], None] | None) -> Callable[[], None] | None:
    """What a new process does before it becomes its program: the steps that are given."""
    given = [step for step in steps if step is not None]

    def run() -> None:
        for step in given:
            step()

    return run if given else None
