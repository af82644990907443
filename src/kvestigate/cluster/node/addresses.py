"""Pod addresses: each node has a /24 of 10.244.0.0/14.

They are from the private range that clusters usually take, because the API refuses loopback
addresses as endpoints; where on the machine a pod's address is, `net.translation` tells.
"""

from __future__ import annotations

import zlib

NETWORKS = 1024
_USABLE = range(2, 255)


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
