"""Keeps the cluster state and the queue current from watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from kvestigate.client.api import PODS, Api
from kvestigate.client.cache import Change, Key
from kvestigate.client.informer import Informer
from kvestigate.cluster.scheduler.queue import PodQueue
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.core import Namespace, Node
from kvestigate.kube.views.devices import DeviceClass, ResourceClaim, ResourceSlice
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")

# Which plugins' rejections a change may undo.
_POD_GONE = frozenset(
    (
        "NodeResourcesFit",
        "NodePorts",
        "InterPodAffinity",
        "PodTopologySpread",
        "VolumeRestrictions",
    )
)
_POD_CAME = frozenset(("InterPodAffinity", "PodTopologySpread"))
_NODE_GONE = frozenset(("PodTopologySpread",))
_STORAGE = frozenset(("VolumeBinding", "VolumeRestrictions", "VolumeZone"))
_DEVICES = frozenset(("DynamicResources",))
_NAMESPACE = frozenset(("InterPodAffinity",))
_LABELS = frozenset(
    (
        "NodeAffinity",
        "PodTopologySpread",
        "InterPodAffinity",
        "VolumeBinding",
        "VolumeZone",
        "DynamicResources",
    )
)
_TAINTS = frozenset(("TaintToleration", "NodeUnschedulable", "PodTopologySpread"))
_ROOM = frozenset(("NodeResourcesFit",))


class Follower:
    """The informers of all resources that decisions depend on, and what their changes lead to."""

    def __init__(self, api: Api, state: ClusterState, queue: PodQueue, name: str) -> None:
        self._state = state
        self._queue = queue
        self._name = name
        self._news: dict[tuple[Resource, Key], asyncio.Event] = {}
        self.informers: dict[str, Informer[Any]] = {}
        self._follow(api, NODES, Node, self._node)
        self._follow(api, NAMESPACES, Namespace, self._namespace)
        self._follow(api, CLAIMS, PersistentVolumeClaim, self._claim)
        self._follow(api, VOLUMES, PersistentVolume, self._volume)
        self._follow(api, CLASSES, StorageClass, self._class)
        self._follow(api, BUDGETS, PodDisruptionBudget, self._budget)
        self._follow(api, RESOURCE_CLAIMS, ResourceClaim, self._resource_claim)
        self._follow(api, DEVICE_CLASSES, DeviceClass, self._device_class)
        self._follow(api, SLICES, ResourceSlice, self._slice)
        self._follow(api, PODS, Pod, self._pod)

    def _follow(
        self,
        api: Api,
        resource: Resource,
        view: type[Any],
        handler: Callable[[Change[Any]], None],
    ) -> None:
        informer = api.informer(resource, type=view)
        informer.subscribe(handler)
        self.informers[resource.plural] = informer

    def pod(self, key: Key) -> Pod | None:
        """The pod as last seen in the watch."""
        pod: Pod | None = self.informers[PODS.plural].get(key)
        return pod

    async def changed(self, resource: Resource, key: Key) -> None:
        """Wait until a claim of volumes or devices changes."""
        await self._news.setdefault((resource, key), asyncio.Event()).wait()

    def _announce(self, resource: Resource, key: Key) -> None:
        news = self._news.pop((resource, key), None)
        if news is not None:
            news.set()

    # -- pods ------------------------------------------------------------------------------------

    def _pod(self, change: Change[Pod]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            self._pod_gone(old)
            old = None
        if new is None:
            if old is not None:
                self._pod_gone(old)
        elif new.finished:
            self._pod_gone(new)
        elif new.spec.node_name:
            self._pod_placed(new)
        elif new.spec.scheduler_name == self._name:
            self._pod_waits(old, new)

    def _pod_gone(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self._queue.remove(uid)
        self._state.withdraw(uid)
        node = self._state.node_of(uid)
        if node is not None:
            self._state.take_away(uid)
            self._queue.something_changed(_POD_GONE)

    def _pod_placed(self, new: Pod) -> None:
        uid, node = new.metadata.uid, new.spec.node_name
        known = self._state.pod(uid)
        self._queue.remove(uid)
        self._state.withdraw(uid)
        if known is not None and self._state.node_of(uid) == node:
            if _same_to_others(known.pod, new):
                return
            self._state.place(PodFacts(new), node)
            self._queue.something_changed(_POD_GONE)  # it may ask for less now
            return
        self._state.place(PodFacts(new), node)
        self._queue.something_changed(_POD_CAME)

    def _pod_waits(self, old: Pod | None, new: Pod) -> None:
        uid = new.metadata.uid
        if self._state.node_of(uid) is not None:
            return  # it is being bound
        if new.metadata.deletion_timestamp is not None or new.spec.scheduling_gates:
            self._queue.remove(uid)
            self._state.withdraw(uid)
            return
        facts = PodFacts(new)
        if uid in self._queue:
            asks_anew = (
                old is None
                or old.spec != new.spec
                or old.metadata.labels != new.metadata.labels
                or old.status.resource_claim_statuses != new.status.resource_claim_statuses
            )
            self._queue.update(facts, retry=asks_anew)
        else:
            self._queue.add(facts)
        if new.status.nominated_node_name:
            self._state.nominate(facts, new.status.nominated_node_name)

    # -- the rest ----------------------------------------------------------------------------------

    def _node(self, change: Change[Node]) -> None:
        old, new = change.old, change.new
        if new is None:
            self._state.drop_node(change.key.name)
            self._queue.something_changed(_NODE_GONE)
        elif old is None:
            self._state.set_node(new)
            self._queue.something_changed(None)
        else:
            affected = _affected(old, new)
            if affected:  # a heartbeat changes nothing here
                self._state.set_node(new)
                self._queue.something_changed(affected)

    def _namespace(self, change: Change[Namespace]) -> None:
        if change.new is None:
            self._state.namespaces.pop(change.key.name, None)
        else:
            self._state.namespaces[change.key.name] = change.new.metadata.labels
        self._queue.something_changed(_NAMESPACE)

    def _claim(self, change: Change[PersistentVolumeClaim]) -> None:
        _keep(self._state.claims, change.key, change.new)
        self._announce(CLAIMS, change.key)
        self._queue.something_changed(_STORAGE)

    def _volume(self, change: Change[PersistentVolume]) -> None:
        _keep(self._state.volumes, change.key.name, change.new)
        self._queue.something_changed(_STORAGE)

    def _class(self, change: Change[StorageClass]) -> None:
        _keep(self._state.classes, change.key.name, change.new)
        self._queue.something_changed(_STORAGE)

    def _resource_claim(self, change: Change[ResourceClaim]) -> None:
        if change.new is None:
            self._state.devices.drop_claim(change.key)
        else:
            self._state.devices.put_claim(change.new)
        self._announce(RESOURCE_CLAIMS, change.key)
        self._queue.something_changed(_DEVICES)

    def _device_class(self, change: Change[DeviceClass]) -> None:
        _keep(self._state.devices.classes, change.key.name, change.new)
        self._queue.something_changed(_DEVICES)

    def _slice(self, change: Change[ResourceSlice]) -> None:
        if change.new is None:
            self._state.devices.drop_slice(change.key.name)
        else:
            self._state.devices.put_slice(change.new)
        self._queue.something_changed(_DEVICES)

    def _budget(self, change: Change[PodDisruptionBudget]) -> None:
        _keep(self._state.budgets, change.key, change.new)


def _keep(objects: dict[Any, Any], key: Any, new: Any) -> None:
    if new is None:
        objects.pop(key, None)
    else:
        objects[key] = new


def _same_to_others(known: Pod, new: Pod) -> bool:
    """Whether a placed pod takes the same resources and matches the same selectors as before."""
    return (
        known.metadata.labels == new.metadata.labels
        and known.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        and known.status.start_time == new.status.start_time
        and known.spec.containers == new.spec.containers
        and known.spec.resources == new.spec.resources
    )


def _affected(old: Node, new: Node) -> frozenset[str]:
    affected: frozenset[str] = frozenset()
    if old.metadata.labels != new.metadata.labels:
        affected |= _LABELS
    if (old.spec.taints, old.spec.unschedulable) != (new.spec.taints, new.spec.unschedulable):
        affected |= _TAINTS
    if old.status.allocatable != new.status.allocatable:
        affected |= _ROOM
    return affected
