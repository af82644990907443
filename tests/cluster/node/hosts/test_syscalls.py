"""The filter program, run here as the kernel runs it."""

from __future__ import annotations

import struct

import pytest

from kvestigate.cluster.node.hosts import syscalls

ALLOW, ASK = 0x7FFF0000, 0x7FC00000


def run(program: bytes, data: bytes) -> int:
    """Of the kernel's little machine, what such a program uses."""
    steps = list(struct.iter_unpack("=HBBI", program))
    at = held = 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        if code == 0x20:
            (held,) = struct.unpack_from("=I", data, value)
        elif code == 0x15:
            at += then if held == value else otherwise
        else:
            assert code == 0x06
            return int(value)


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    found = syscalls.numbers(machine)
    assert found is not None
    padded = (*arguments, *([0] * (6 - len(arguments))))
    here = found.architecture if architecture is None else architecture
    return run(syscalls.program(found), struct.pack("=iIQ6Q", number, here, 0, *padded))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_only_calls_that_name_an_address_are_asked_about(machine: str) -> None:
    found = syscalls.numbers(machine)
    assert found is not None
    for name, number in (("bind", found.bind), ("connect", found.connect)):
        assert verdict(machine, number) == ASK, name
    assert verdict(machine, found.sendto, 3, 0, 0, 0, 0, 0) == ALLOW
    # An address in the upper half of the memory has nothing in its lower bits.
    for address in (1, 1 << 32, (1 << 47) - 1):
        assert verdict(machine, found.sendto, 3, 0, 0, 0, address, 16) == ASK
    others = {0, 1, 41, 43, 45, 50, 51, 198, 199, 201, 202, 204, 205, 207, 1000}
    for number in others - {found.bind, found.connect, found.sendto}:
        assert verdict(machine, number) == ALLOW, number


def test_calls_of_another_architecture_mean_something_else() -> None:
    assert verdict("x86_64", 42, architecture=0x40000003) == ALLOW


def test_an_unknown_machine_has_no_filter() -> None:
    assert syscalls.numbers("riscv128") is None
