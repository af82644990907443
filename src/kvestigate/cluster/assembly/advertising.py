"""Where the cluster's API server listens, and what the `kubernetes` Service says about it."""

from __future__ import annotations

import socket
from random import Random
from typing import Any

from kvestigate.client.api import Api
from kvestigate.kube import builtins

_NAME, _NAMESPACE = "kubernetes", "default"
_SLICES = builtins.resource("endpointslices")
_ENDPOINTS = builtins.resource("endpoints")
_FAR_AWAY = ("192.0.2.1", 9)
"""An address for documentation: nothing is ever sent to it."""
_LASTING_PORTS = range(15_000, 32_000)
"""Below the ports that systems hand out to clients, which would take ours between two starts."""
_TRIES = 20


async def advertise(api: Api, address: str, port: int) -> None:
    """Write both kinds of endpoints, as an API server does of itself."""
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    metadata = {"name": _NAME, "namespace": _NAMESPACE}
    await api.apply(
        _ENDPOINTS,
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {
                **metadata,
                "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
            },
            "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
        },
        force=True,
        type=bytes,
    )
    await api.apply(_SLICES, _slice(metadata, address, ports), force=True, type=bytes)


def _slice(metadata: dict[str, str], address: str, ports: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": _NAME}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }


def own_address() -> str | None:
    """The address that this machine is known by; None if it has none but loopback.

    Endpoints may not be at loopback addresses, so like any API server that listens there, ours
    names the machine. Pods of the cluster are led to it all the same.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_FAR_AWAY)
        except OSError:
            return None
        address: str = probe.getsockname()[0]
        return None if address.startswith("127.") else address


def lasting_port(address: str, random: Random) -> int:
    """A port that is free and likely to be free again later; 0, any one, if none is found."""
    for port in random.sample(_LASTING_PORTS, _TRIES):
        try:
            with socket.create_server((address, port)):
                return port
        except OSError:  # somebody else's
            continue
    return 0
