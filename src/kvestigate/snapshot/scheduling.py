"""What decides where pods can be, and what becomes of evicted pods, read at one moment.

`take` reads for reports, which need little of each pod. Plans need what the scheduler needs: whole
pod specs, volumes, budgets, and the controllers that recreate pods. A list that is forbidden is in
`unread` with its reason, and whatever depends on it is unknown, never assumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from msgspec import structs

from kvestigate.aio.groups import one_failure
from kvestigate.client.api import Api
from kvestigate.errors import ApiError, Forbidden, NotFound
from kvestigate.kube import builtins
from kvestigate.kube.devices.inventory import Inventory
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.keys import key_of
from kvestigate.kube.views.core import Namespace, Node, Taint
from kvestigate.kube.views.devices import DeviceClass, ResourceClaim, ResourceSlice
from kvestigate.kube.views.meta import Condition, Metadata, View
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kvestigate.snapshot.capacity import is_ready
from kvestigate.snapshot.source import Progress

NODES, PODS, NAMESPACES, BUDGETS = "nodes", "pods", "namespaces", "poddisruptionbudgets"
CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses"
RESOURCE_CLAIMS, SLICES, DEVICE_CLASSES = "resourceclaims", "resourceslices", "deviceclasses"
DEVICES = frozenset((RESOURCE_CLAIMS, SLICES, DEVICE_CLASSES))
"""What decides where a pod with ResourceClaims fits."""
CONTROLLERS = {
    "ReplicaSet": "replicasets",
    "ReplicationController": "replicationcontrollers",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "Job": "jobs",
}
"""Kinds of controllers whose behaviour is known, with their resources."""

_NOT_READY = Taint("node.kubernetes.io/not-ready", effect="NoSchedule")
_CORDONED = "node.kubernetes.io/unschedulable"
_TOGETHER = 4


class FailureRule(View, frozen=True):
    action: str = ""
    on_pod_conditions: tuple[Condition, ...] = ()


class FailurePolicy(View, frozen=True):
    rules: tuple[FailureRule, ...] = ()


class WorkloadSpec(View, frozen=True):
    replicas: int = 1
    backoff_limit: int = 6
    suspend: bool = False
    pod_failure_policy: FailurePolicy = FailurePolicy()


class WorkloadStatus(View, frozen=True):
    update_revision: str = ""
    failed: int = 0
    conditions: tuple[Condition, ...] = ()


class Workload(View, frozen=True):
    """A controller of pods, of any kind; fields that the kind does not have keep their default."""

    metadata: Metadata = Metadata()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


_READ: Mapping[str, type[Any]] = {
    NODES: Node,
    PODS: Pod,
    NAMESPACES: Namespace,
    BUDGETS: PodDisruptionBudget,
    CLAIMS: PersistentVolumeClaim,
    VOLUMES: PersistentVolume,
    CLASSES: StorageClass,
    RESOURCE_CLAIMS: ResourceClaim,
    SLICES: ResourceSlice,
    DEVICE_CLASSES: DeviceClass,
    **dict.fromkeys(CONTROLLERS.values(), Workload),
}


@dataclass(frozen=True)
class Situation:
    """The cluster as the scheduler and the eviction API see it."""

    captured_at: datetime
    """UTC."""
    listed: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Resource -> objects."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Resource -> why it could not be listed."""

    def of(self, resource: str) -> Sequence[Any]:
        return self.listed.get(resource, ())

    @property
    def nodes(self) -> Sequence[Node]:
        return self.of(NODES)

    @property
    def pods(self) -> Sequence[Pod]:
        return self.of(PODS)

    @property
    def budgets(self) -> Sequence[PodDisruptionBudget]:
        return self.of(BUDGETS)

    @cached_property
    def controllers(self) -> Mapping[str, Workload]:
        """By uid."""
        return {
            workload.metadata.uid: workload
            for resource in CONTROLLERS.values()
            for workload in self.of(resource)
        }

    @cached_property
    def running(self) -> Mapping[str, int]:
        """The uid of a controller -> its pods that are neither finished nor terminating."""
        counts: dict[str, int] = {}
        for pod in self.pods:
            if not pod.finished and pod.metadata.deletion_timestamp is None:
                for owner in pod.metadata.owner_references:
                    if owner.controller:
                        counts[owner.uid] = counts.get(owner.uid, 0) + 1
        return counts

    def require(self, resources: Iterable[str], purpose: str) -> None:
        """Raises Forbidden if one of these could not be listed."""
        for resource in resources:
            if resource in self.unread:
                raise Forbidden(
                    f"{purpose}: cannot list {resource}: {self.unread[resource]}",
                    hint=f"use a user that may list {resource} in all namespaces",
                )

    def without_cordons(self, names: Collection[str]) -> Situation:
        """As if these nodes were not cordoned."""
        nodes = [_opened(node) if node.metadata.name in names else node for node in self.nodes]
        return replace(self, listed={**self.listed, NODES: nodes})

    def state(self) -> ClusterState:
        """The cluster as the filters of the scheduler see it; a new value with each call."""
        state = ClusterState()
        for node in self.nodes:
            state.set_node(node if is_ready(node) else _closed(node))
        state.claims.update((key_of(claim), claim) for claim in self.of(CLAIMS))
        state.volumes.update((volume.metadata.name, volume) for volume in self.of(VOLUMES))
        state.classes.update((each.metadata.name, each) for each in self.of(CLASSES))
        self._count_devices(state.devices)
        state.namespaces.update(
            (each.metadata.name, each.metadata.labels) for each in self.of(NAMESPACES)
        )
        for pod in self.pods:
            # Preemption makes room for a nominated pod: nobody else can have that room.
            where = pod.spec.node_name or pod.status.nominated_node_name
            if where and not pod.finished:
                state.place(PodFacts(pod), where)
        return state

    def _count_devices(self, devices: Inventory) -> None:
        devices.classes.update((each.metadata.name, each) for each in self.of(DEVICE_CLASSES))
        for resource_slice in self.of(SLICES):
            devices.put_slice(resource_slice)
        for claim in self.of(RESOURCE_CLAIMS):
            devices.put_claim(claim)


def _closed(node: Node) -> Node:
    """A node that is not ready takes no pods, even before the node controller has tainted it."""
    taints = (*node.spec.taints, _NOT_READY)
    return structs.replace(node, spec=structs.replace(node.spec, taints=taints))


def _opened(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint.key != _CORDONED)
    return structs.replace(
        node, spec=structs.replace(node.spec, unschedulable=False, taints=taints)
    )


async def read(api: Api, progress: Progress | None = None) -> Situation:
    """Every list once, a few at a time."""
    listed: dict[str, Sequence[Any]] = {}
    unread: dict[str, str] = {}
    room = asyncio.Semaphore(_TOGETHER)

    async def each(resource: str, view: type[Any]) -> None:
        async with room:
            try:
                page = await api.list(builtins.resource(resource), type=view)
                listed[resource] = page.items
                if progress is not None:
                    progress(resource, len(page.items), len(page.items))
            except (Forbidden, NotFound) as error:
                unread[resource] = error.message
            except ApiError as error:
                if resource in (NODES, PODS):
                    raise
                unread[resource] = error.message

    with one_failure():
        async with asyncio.TaskGroup() as tasks:
            for resource, view in _READ.items():
                tasks.create_task(each(resource, view))
    return Situation(datetime.now(UTC).replace(microsecond=0), listed, unread)
