"""Ports that a cluster can come back to."""

from __future__ import annotations

import socket
from random import Random

from kvestigate.cluster.assembly.advertising import lasting_port

ADDRESS = "127.0.0.1"


def test_a_port_is_free_and_none_that_clients_are_lent() -> None:
    port = lasting_port(ADDRESS, Random(1))
    assert 1024 < port < 32_768
    with socket.create_server((ADDRESS, port)):
        pass


def test_a_port_that_somebody_has_is_passed_over() -> None:
    first = lasting_port(ADDRESS, Random(1))
    with socket.create_server((ADDRESS, first)):
        assert lasting_port(ADDRESS, Random(1)) not in (first, 0)
