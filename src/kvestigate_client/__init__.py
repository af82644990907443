"""The SDK for agents and training: the standard library and httpx, nothing else.

with PlaneClient.from_kubeconfig(path) as client:
    plane = client.create("alpha")
    plane.apply(manifest)
    plane.snapshot().items("pods")
"""

from __future__ import annotations

from kvestigate_client.client import AsyncPlaneClient, PlaneClient
from kvestigate_client.connection import Connection
from kvestigate_client.failures import PlaneError
from kvestigate_client.fleets import AsyncFleet, Fleet
from kvestigate_client.planes import AsyncPlane, Plane
from kvestigate_client.results import Difference, Event, FleetStatus, Snapshot, Stepped

__all__ = [
    "AsyncFleet",
    "AsyncPlane",
    "AsyncPlaneClient",
    "Connection",
    "Difference",
    "Event",
    "Fleet",
    "FleetStatus",
    "Plane",
    "PlaneClient",
    "PlaneError",
    "Snapshot",
    "Stepped",
]
