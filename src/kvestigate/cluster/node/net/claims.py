"""Which node of this machine has which pod addresses: no two may have the same.

A claim is a bound socket, so it holds between the clusters of all users and ends with its
process, however that ends.
"""

from __future__ import annotations

import socket
from pathlib import Path

from kvestigate import errors
from kvestigate.cluster.node.addresses import NETWORKS, network_of
from kvestigate.cluster.node.net.translation import on_machine

_PORT = 10244


class Claim:
    """The addresses of one node, until closed."""

    def __init__(self, prefix: str, held: socket.socket) -> None:
        self.prefix = prefix
        """`10.244.7`"""
        self._held = held

    def close(self) -> None:
        self._held.close()


def claim(name: str, kept: Path) -> Claim:
    """Addresses that no other node has; those of the last time if they are free.

    `kept` is the file that remembers them.
    """
    candidates = [network_of(f"{kept} {name}", attempt=step) for step in range(NETWORKS)]
    try:
        candidates.insert(0, kept.read_text().strip())
    except OSError:
        pass
    for prefix in candidates:
        held = _hold(prefix)
        if held is not None:
            kept.write_text(f"{prefix}\n")
            return Claim(prefix, held)
    raise errors.KvestigateError(
        f"all {NETWORKS} ranges of pod addresses of this machine are taken",
        hint="stop clusters that are not needed: kvestigate down --name NAME",
    )


def _hold(prefix: str) -> socket.socket | None:
    held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        held.bind((on_machine(f"{prefix}.1"), _PORT))
    except OSError:
        held.close()
        return None
    return held
