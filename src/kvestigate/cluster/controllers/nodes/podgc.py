"""Removes pods that no kubelet will end: their node is gone, or they never had one."""

from __future__ import annotations

from collections.abc import Iterable

from kvestigate import errors
from kvestigate.client.cache import Change, Key
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import NODES, PODS
from kvestigate.cluster.controllers.nodes.lifecycle import NODE, mark_disrupted, node_names
from kvestigate.cluster.controllers.pods import is_leaving
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod

QUARANTINE = 40.0
"""Seconds that a node may be missing: it may only be on its way back."""


def decide(pod: Pod, node_known: bool, missing_since: float | None, now: float) -> float | None:
    """Seconds until the pod is to be removed; None if it stays."""
    if not pod.spec.node_name:
        return 0.0 if is_leaving(pod) else None
    if node_known or missing_since is None:
        return None
    return max(0.0, missing_since + QUARANTINE - now)


class PodGarbageController(Reconciler[Pod]):
    def __init__(self, context: Context) -> None:
        self._nodes = context.watch(NODES, self._node_gone)
        super().__init__(context, PODS, self._pod_changed)
        self._objects.add_index(NODE, node_names)
        self._missing: dict[Key, float] = {}
        """Nodes that pods are bound to, and since when they are known not to be there."""

    def _node_gone(self, change: Change[Node]) -> Iterable[Key]:
        if change.new is not None:
            self._missing.pop(change.key, None)
            return
        for pod in self._objects.find(NODE, change.key.name):
            yield Key(pod.metadata.namespace, pod.metadata.name)

    def _pod_changed(self, change: Change[Pod]) -> Iterable[Key]:
        pod = change.new
        if pod is None:
            return
        where = Key("", pod.spec.node_name)
        if not pod.spec.node_name:
            if is_leaving(pod):
                yield change.key
        elif self._nodes.get(where) is None:
            yield change.key

    async def _reconcile(self, pod: Pod) -> float | None:
        now = self._context.now()
        where = Key("", pod.spec.node_name)
        known = self._nodes.get(where) is not None
        since = None if known or not pod.spec.node_name else self._missing.setdefault(where, now)
        left = decide(pod, known, since, now)
        if left == 0 and not (pod.spec.node_name and await self._exists(where)):
            await self._remove(pod)
            return None
        return left or None

    async def _exists(self, node: Key) -> bool:
        """Whether the node exists: asked of the API server, as a cache may be behind."""
        try:
            await self._context.api.get(NODES.resource, node.name, type=bytes)
        except errors.NotFound:
            return False
        return True

    async def _remove(self, pod: Pod) -> None:
        if pod.spec.node_name and not pod.finished:
            message = "PodGC: node no longer exists"
            await mark_disrupted(self._context, pod, "DeletionByPodGC", message, fail=True)
        await self._context.delete(PODS, pod, grace_seconds=0)
