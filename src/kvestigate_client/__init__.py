"""The SDK for agents and training: the standard library and httpx2, nothing else.

with PlaneClient.from_kubeconfig(path) as client:
    plane = client.create("alpha")
    plane.apply(manifest)
    plane.snapshot().items("pods")

with DistributedJob(CybernetClient(url, token), prefix="job", shards=4) as job:
    job.discover_and_plan(cpu_per_shard=8)
    job.provision()
    job.run(["python3", "-c", "print('hello')"])
    job.wait_until_complete()
"""

from __future__ import annotations

from kvestigate_client.client import AsyncPlaneClient, PlaneClient
from kvestigate_client.connection import Connection
from kvestigate_client.distributed_job import DistributedJob
from kvestigate_client.failures import PlaneError
from kvestigate_client.fleets import AsyncFleet, Fleet
from kvestigate_client.gateway import CybernetClient, CybernetError
from kvestigate_client.planes import AsyncPlane, Plane
from kvestigate_client.results import Difference, Event, FleetStatus, Snapshot, Stepped
from kvestigate_client.shards import JobFailed, ShardTask

__all__ = [
    "AsyncFleet",
    "AsyncPlane",
    "AsyncPlaneClient",
    "Connection",
    "CybernetClient",
    "CybernetError",
    "Difference",
    "DistributedJob",
    "Event",
    "Fleet",
    "FleetStatus",
    "JobFailed",
    "Plane",
    "PlaneClient",
    "PlaneError",
    "ShardTask",
    "Snapshot",
    "Stepped",
]
