"""Addresses as calls name them, and where those are."""

from __future__ import annotations

import ipaddress
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.node.net.translation import (
    Address,
    Ports,
    is_on_machine,
    is_pod,
    on_machine,
    read_address,
)


def four(ip: str, port: int) -> bytes:
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, packed(ip))


def six(ip: str, port: int) -> bytes:
    body = struct.pack("!HI16sI", port, 0, packed(ip), 0)
    return struct.pack("=H", socket.AF_INET6) + body


def packed(ip: str) -> bytes:
    return ipaddress.ip_address(ip).packed


@pytest.mark.parametrize(
    ("content", "address"),
    [
        (four("10.244.1.2", 80), Address("10.244.1.2", 80)),
        (six("::1", 443), Address("::1", 443)),
        (six("::", 0), Address("::", 0)),
        (six("::ffff:10.0.0.1", 443), Address("10.0.0.1", 443)),
        (struct.pack("=H", socket.AF_UNIX) + b"/run/x", None),
        (b"", None),
        (four("1.2.3.4", 5)[:7], None),
        (six("::1", 443)[:23], None),
    ],
)
def test_addresses_are_read_as_the_kernel_reads_them(
    content: bytes, address: Address | None
) -> None:
    assert read_address(content) == address


@given(st.binary(max_size=40))
def test_any_bytes_are_an_address_or_none(content: bytes) -> None:
    address = read_address(content)
    assert address is None or ipaddress.ip_address(address.ip)


@given(st.ip_addresses(v=4))
def test_pods_are_where_their_address_says_with_another_beginning(
    ip: ipaddress.IPv4Address,
) -> None:
    there = on_machine(str(ip))
    inside = ip in ipaddress.ip_network("10.244.0.0/14")
    assert is_pod(str(ip)) == inside
    assert is_on_machine(there) == (inside or ip in ipaddress.ip_network("127.244.0.0/14"))
    assert there.split(".")[1:] == str(ip).split(".")[1:]
    assert (there == str(ip)) != inside


@pytest.mark.parametrize(
    ("ip", "loopback"),
    [("127.0.0.1", True), ("127.0.0.53", True), ("::1", True), ("127.244.0.2", False),
     ("127.247.255.255", False), ("127.248.0.1", True), ("10.0.0.1", False), ("::", False)],
)  # fmt: skip
def test_a_pods_address_is_nobodys_loopback(ip: str, loopback: bool) -> None:
    assert Address(ip, 1).loopback is loopback


@pytest.mark.parametrize(
    ("first_free", "port", "there"),
    [(0, 80, 80), (1024, 80, 64592), (1024, 1023, 65535), (1024, 1024, 1024), (1024, 0, 0),
     (80, 79, 64591), (80, 80, 80), (1024, 65000, 65000)],
)  # fmt: skip
def test_low_ports_are_raised_where_they_are_forbidden(
    first_free: int, port: int, there: int
) -> None:
    assert Ports(first_free).on_machine(port) == there
