"""Pod addresses: names for pods rather than routes, as pods share the machine's network.

They are from the private range that clusters usually take, because the API refuses loopback
addresses as endpoints; whoever connects asks the host where the pod's ports really are.
"""

from __future__ import annotations

import zlib

_USABLE = range(2, 255)


class Addresses:
    """The addresses of one node: a /24 of 10.244.0.0/14 that its name decides."""

    def __init__(self, node: str) -> None:
        number = zlib.crc32(node.encode()) % 1024
        self._prefix = f"10.{244 + number // 256}.{number % 256}"
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
        return address  # more pods than addresses: two share one, and nothing routes by them
