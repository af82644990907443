"""Who holds how much of the GPUs, since when, and whether it is used. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kvestigate.kube.requests import Amounts, requests_of
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.gpus import MIG_PREFIX, SHARED, at_work, gpu_requests, gpus_only
from kvestigate.snapshot.ledger.model import Device, Ledger, NodeGpus
from kvestigate.snapshot.model_servers import Serving
from kvestigate.snapshot.pods import Pod

_SLICES = 7
"""Compute slices of a GPU with MIG; `3g.40gb` has 3 of them."""
_PROFILE = re.compile(r"(\d+)g\.")
_INSTANCES = "-MIG-"


@dataclass(frozen=True, slots=True)
class Holding:
    """The GPUs of one pod."""

    namespace: str
    pod: str
    workload: str
    """`Deployment web`; of a pod without an owner, `Pod web`."""
    node: str
    model: str
    what: dict[str, int]
    """`GPU`, `1g.10gb` or `share` -> how many."""
    gpus: float | None
    """In GPUs: a partition and a share are a part of one. None if the part is unknown."""
    since: datetime | None
    """When the pod was created."""
    labels: Mapping[str, str] = field(default_factory=dict)
    measured: int = 0
    """Devices of the pod that an exporter measured."""
    utilization: float | None = None
    """Percent, the highest of its devices; None if one of them was not measured."""
    memory_mib: float | None = None
    """GPU memory in use."""
    serving: Serving | None = None
    """What the pod's model server says; None if it has none, or was not asked."""
    idle_since: datetime | None = None
    """From when on it did nothing, as far as that is known."""

    @property
    def idle(self) -> bool | None:
        """None if unknown: not all of its devices were measured, and no model server answered.

        A model server knows best: requests that run are work, whatever the GPU shows, and a server
        that nobody ever asked does none, even if it polls.
        """
        if self.serving is not None and (self.serving.at_work or self.serving.never_used):
            return not self.serving.at_work
        return None if self.utilization is None else not at_work(self.utilization)


def holdings(
    book: Ledger, pods: Iterable[Pod], readings: Iterable[GpuReading]
) -> tuple[Holding, ...]:
    """One for each pod on a node that holds GPUs, by request or by claim; the largest first."""
    nodes = {node.node: node for node in book.nodes or ()}
    claimed: dict[str, list[tuple[Device, int]]] = {}
    for device in book.devices:
        users = (device.user or "").split(", ") if device.claims else []
        for user in users:
            claimed.setdefault(user, []).append((device, len(users)))
    measured: dict[str, list[GpuReading]] = {}
    for reading in readings:
        if reading.pod:
            measured.setdefault(f"{reading.namespace}/{reading.pod}", []).append(reading)
    found = []
    for pod in pods:
        if pod.finished or not pod.spec.node_name:
            continue
        requests = _requests(pod)
        if not requests and not claimed:
            continue
        path = f"{pod.metadata.namespace}/{pod.metadata.name}"
        devices = claimed.get(path, ())
        if requests or devices:
            node = nodes.get(pod.spec.node_name)
            found.append(_holding(pod, node, _parts(requests, devices, node), measured.get(path)))
    return tuple(sorted(found, key=lambda held: (-(held.gpus or 0), held.namespace, held.pod)))


def _requests(pod: Pod) -> Amounts:
    """As the scheduler counts: init containers run before the others."""
    if pod.spec.init_containers:
        return gpus_only(requests_of(pod.spec)) if any(gpu_requests(pod)) else {}
    requests: Amounts = {}
    for _, resource, amount in gpu_requests(pod):
        requests[resource] = requests.get(resource, 0) + amount
    return requests


def _parts(
    requests: Amounts,
    devices: Sequence[tuple[Device, int]],
    node: NodeGpus | None,
) -> list[tuple[str, int, float | None]]:
    """Name, number, and the share of a GPU that each is."""
    parts: list[tuple[str, int, float | None]] = []
    for resource, amount in requests.items():
        name, share = _part(resource, node)
        parts.append((name, amount, share))
    for device, users in devices:
        part = share_of(device.profile) if device.parent else 1.0
        name = (device.profile or "partition") if device.parent else "GPU"
        parts.append((name, 1, None if part is None else part / users))
    return parts


def _part(resource: str, node: NodeGpus | None) -> tuple[str, float | None]:
    """What a resource stands for, and the share of a GPU that one of it is."""
    replicas = node.replicas if node is not None else 1
    shared = resource.endswith(SHARED) or replicas > 1
    if resource.startswith(MIG_PREFIX):
        profile = resource.removeprefix(MIG_PREFIX).removesuffix(SHARED)
    else:
        profile = node.model.rpartition(_INSTANCES)[2] if node and _INSTANCES in node.model else ""
    share = share_of(profile) if profile else 1.0
    if shared:
        known = share is not None and replicas > 1
        return "share", share / replicas if known and share is not None else None
    return profile or "GPU", share


def share_of(profile: str) -> float | None:
    """The share of a GPU that a MIG profile is: 3/7 for `3g.40gb`; None if it does not say."""
    match = _PROFILE.match(profile)
    return min(int(match[1]) / _SLICES, 1.0) if match else None


def _holding(
    pod: Pod,
    node: NodeGpus | None,
    parts: Sequence[tuple[str, int, float | None]],
    measured: Sequence[GpuReading] | None,
) -> Holding:
    what: dict[str, int] = {}
    for name, count, _ in parts:
        what[name] = what.get(name, 0) + count
    shares = [None if share is None else share * count for _, count, share in parts]
    readings = measured or ()
    memory = [reading.memory_used_mib for reading in readings if reading.memory_used_mib]
    complete = len(readings) >= sum(count for _, count, _ in parts)
    return Holding(
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        workload=workload_of(pod),
        node=pod.spec.node_name,
        model=node.model if node is not None else "",
        what=what,
        gpus=None if None in shares else sum(share or 0.0 for share in shares),
        since=pod.metadata.creation_timestamp,
        labels=pod.metadata.labels,
        measured=len(readings),
        utilization=max(reading.utilization for reading in readings) if complete else None,
        memory_mib=sum(memory) if memory else None,
    )


def workload_of(pod: Pod) -> str:
    """`Deployment web`: what to scale down. A ReplicaSet's name is its Deployment's and a hash."""
    for owner in pod.metadata.owner_references:
        if owner.controller:
            digest = pod.metadata.labels.get("pod-template-hash", "")
            if owner.kind == "ReplicaSet" and digest and owner.name.endswith(f"-{digest}"):
                return f"Deployment {owner.name.removesuffix(f'-{digest}')}"
            return f"{owner.kind} {owner.name}"
    return f"Pod {pod.metadata.name}"
