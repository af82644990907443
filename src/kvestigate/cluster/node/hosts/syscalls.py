"""Which system calls the kernel asks about, and the filter program that says so. Linux. Pure."""

from __future__ import annotations

import platform
import struct
from dataclasses import dataclass

_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000

# Offsets in `struct seccomp_data`.
_NUMBER, _ARCHITECTURE = 0, 4
_FIFTH_LOW, _FIFTH_HIGH = 16 + 4 * 8, 16 + 4 * 8 + 4
"""The address of `sendto`."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of system calls on an architecture."""

    architecture: int
    """The number by which the kernel's audit knows the architecture."""
    seccomp: int
    bind: int
    connect: int
    sendto: int


_KNOWN = {
    "x86_64": Numbers(0xC000003E, seccomp=317, bind=49, connect=42, sendto=44),
    "aarch64": Numbers(0xC00000B7, seccomp=277, bind=200, connect=203, sendto=206),
}


def numbers(machine: str = "") -> Numbers | None:
    """The numbers of this machine, or of the architecture named; None if it is unknown."""
    return _KNOWN.get(machine or platform.machine())


def program(calls: Numbers) -> bytes:
    """Ask about `bind`, `connect`, and `sendto` with an address; let all else pass.

    A connected socket sends without an address, so data is never asked about.
    """
    return b"".join(
        (
            _step(_LOAD, _ARCHITECTURE),
            _step(_JUMP_EQUAL, calls.architecture, otherwise=8),
            _step(_LOAD, _NUMBER),
            _step(_JUMP_EQUAL, calls.connect, then=7),
            _step(_JUMP_EQUAL, calls.bind, then=6),
            _step(_JUMP_EQUAL, calls.sendto, otherwise=4),
            _step(_LOAD, _FIFTH_LOW),
            _step(_JUMP_EQUAL, 0, otherwise=3),
            _step(_LOAD, _FIFTH_HIGH),
            _step(_JUMP_EQUAL, 0, otherwise=1),
            _step(_RETURN, _ALLOW),
            _step(_RETURN, _ASK),
        )
    )


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
