"""How one node presents itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvestigate.cluster.node.gpu.model import Gpu

SELDOM = 20.0
"""Seconds between two lease renewals where one process runs many nodes: half of the lease's
duration. Such nodes fail together, so renewing more often would only add load."""


@dataclass(frozen=True, slots=True)
class NodeConfig:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    """Overrides and additions to what the machine has: `{"nvidia.com/gpu": "8"}`."""
    pods: int = 110
    address: str = "127.0.0.1"
    """Where the kubelet API listens, and the node's InternalIP."""
    serves: bool = True
    """Whether there is a kubelet API at all: without one, no logs and no exec."""
    client_ca: bytes | None = None
    """PEM. Callers of the kubelet API need a certificate issued by this CA, or the token."""
    token: str = ""
    """Without a CA and without a token, every caller that reaches the port is accepted."""
    api_address: tuple[str, int] | None = None
    """Where containers reach the API server."""
    gpus: tuple[Gpu, ...] = ()
    missing_images: tuple[str, ...] = ()
    """Patterns of images that are to be treated as if no registry had them."""
    workers: int = 8
    """Pods worked on at once: each spends most of its time waiting for the API or a fork."""
    lease_seconds: int = 40
    heartbeat: float = 10.0
    """Seconds between two renewals of the lease."""
    report: float = 300.0
    """Seconds between two reports of an unchanged status."""
    refresh: float = 60.0
    """Seconds between two updates of volumes made from ConfigMaps, Secrets and tokens."""
    terse: bool = False
    """Whether to skip the events of containers that start and stop as wanted, and the last status
    of a pod that is deleted at once. With thousands of simulated pods those are more than half of
    all writes."""
    keep_pods: bool = False
    """Whether pods outlive the agent, to be taken over by the next one."""
