"""Pod addresses: each node has a /24 of 10.244.0.0/14, and no other node of the machine has it.

They are from the private range that clusters usually take, because the API refuses loopback
addresses as endpoints; `net.translation` says where on the machine a pod's address is.

A node claims its /24 by binding a socket, so the claim holds between the clusters of all users
of the machine and ends with the process, even if that is killed.
"""

from __future__ import annotations

import socket
import zlib
from pathlib import Path

from kvestigate import errors
from kvestigate.cluster.node.net.translation import on_machine

NETWORKS = 1024
_USABLE = range(2, 255)
_CLAIM_PORT = 10244


def network_of(name: str, *, attempt: int = 0) -> str:
    """The first three parts of the addresses of a node.

    A name decides on them, and two names may well decide on the same: then try the next.
    """
    number = (zlib.crc32(name.encode()) + attempt) % NETWORKS
    return f"10.{244 + number // 256}.{number % 256}"


class Addresses:
    """The addresses of one node."""

    def __init__(self, prefix: str) -> None:
        """`10.244.7`"""
        self._prefix = prefix
        self._taken: dict[str, str] = {}
        self._next = 0

    def take(self, pod_uid: str, wanted: str = "") -> str:
        """The address of a pod, `wanted` if it had one before."""
        if pod_uid not in self._taken:
            self._taken[pod_uid] = wanted or self._free()
        return self._taken[pod_uid]

    def release(self, pod_uid: str) -> None:
        self._taken.pop(pod_uid, None)

    def _free(self) -> str:
        used = set(self._taken.values())
        for _ in _USABLE:
            address = f"{self._prefix}.{_USABLE[self._next % len(_USABLE)]}"
            self._next += 1
            if address not in used:
                return address
        return address  # more pods than addresses: two share one


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
        f"all {NETWORKS} pod address ranges of this machine are in use",
        hint="stop a cluster that is not needed: kvestigate down --name NAME",
    )


def _hold(prefix: str) -> socket.socket | None:
    held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        held.bind((on_machine(f"{prefix}.1"), _CLAIM_PORT))
    except OSError:
        held.close()
        return None
    return held
