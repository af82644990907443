"""Nodes: notice those that fall silent, taint them, and free the pods they hold."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from kvestigate.client.api import PatchType
from kvestigate.client.cache import Change, Key, key_of
from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import LEASES, NODES, PODS
from kvestigate.cluster.controllers.nodes.health import Decision, decide, time_to_stay, written
from kvestigate.cluster.controllers.pods import is_leaving, is_ready
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.cluster.controllers.times import earliest
from kvestigate.kube.times import text
from kvestigate.kube.views.core import Lease, Node
from kvestigate.kube.views.pods import Pod

LEASE_NAMESPACE = "kube-node-lease"
NODE = "node"
"""The index of pods by the node that they are bound to."""


class NodeLifecycleController(Reconciler[Node]):
    """A renewed lease is only noted: a healthy node is reconciled once a minute."""

    def __init__(self, context: Context) -> None:
        self._heard: dict[Key, tuple[datetime | None, float]] = {}
        super().__init__(context, NODES, self._changed)
        self._leases = context.watch(LEASES, self._renewed)
        self._pods = context.cache(PODS)
        self._pods.add_index(NODE, node_names)

    def _changed(self, change: Change[Node]) -> Iterable[Key]:
        if change.new is None:
            self._heard.pop(change.key, None)
        else:
            self._heard.setdefault(change.key, (None, self._context.now()))
        yield change.key

    def _renewed(self, change: Change[Lease]) -> Iterable[Key]:
        if change.key.namespace != LEASE_NAMESPACE or change.new is None:
            return
        key = Key("", change.key.name)
        renewed = change.new.spec.renew_time
        # By our own clock: the node's may be wrong.
        if self._heard.get(key, (None, 0.0))[0] != renewed:
            self._heard[key] = (renewed, self._context.now())
            node = self._objects.get(key)
            if node is not None and not conditions.is_true(node.status.conditions, "Ready"):
                yield key

    async def _reconcile(self, node: Node) -> float | None:
        now = self._context.now()
        _, heard = self._heard.get(key_of(node), (None, now))
        decision = decide(node, heard, now)
        await self._apply(node, decision)
        return decision.pause

    async def _apply(self, node: Node, decision: Decision) -> None:
        name = node.metadata.name
        ready = conditions.find(decision.conditions, "Ready")
        if decision.conditions != node.status.conditions:
            status = msgspec.structs.replace(node.status, conditions=decision.conditions)
            await self._put_status(node, status)
            if ready is None or ready.status != "True":
                self._tell(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
                await self._mark_pods(name)
        if decision.taints != node.spec.taints:
            taints = [written(taint) for taint in decision.taints]
            # Only over the version that was looked at: people write taints too.
            current = self._objects.get(key_of(node)) or node
            version = {"resourceVersion": current.metadata.resource_version}
            patch = {"metadata": version, "spec": {"taints": taints or None}}
            await self._context.patch(NODES, node, patch)

    async def _mark_pods(self, node: str) -> None:
        """Set the pods of the node to not ready, so that Services send them no traffic."""
        lost = {"type": "Ready", "status": "False", "lastTransitionTime": text(self._context.now())}
        patch = {"status": {"conditions": [lost]}}
        strategic = PatchType.STRATEGIC
        for pod in self._pods.find(NODE, node):
            if is_ready(pod):
                await self._context.patch(PODS, pod, patch, type=strategic, subresource="status")


def node_names(pod: Pod) -> tuple[str, ...]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


class TaintEvictionController(Reconciler[Node]):
    """Deletes the pods that a NoExecute taint drives away, when their time has come."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, NODES, self._tainted)
        self._pods = context.watch(PODS, self._bound)
        self._pods.add_index(NODE, node_names)

    def _tainted(self, change: Change[Node]) -> Iterable[Key]:
        old, new = change.old, change.new
        if new is not None and (old is None or old.spec.taints != new.spec.taints):
            yield change.key

    def _bound(self, change: Change[Pod]) -> Iterable[Key]:
        new, old = change.new, change.old
        if new is None or not new.spec.node_name or is_leaving(new):
            return
        known = old is not None and old.spec.node_name == new.spec.node_name
        node = self._objects.get(Key("", new.spec.node_name))
        if node is not None and node.spec.taints and not known:
            yield Key("", new.spec.node_name)

    async def _reconcile(self, node: Node) -> float | None:
        pauses = []
        for pod in self._pods.find(NODE, node.metadata.name):
            if is_leaving(pod) or pod.finished:
                continue
            left = time_to_stay(pod, node.spec.taints, self._context.now())
            if left == 0:
                await self._evict(pod)
            pauses.append(left or None)
        return earliest(*pauses)

    async def _evict(self, pod: Pod) -> None:
        reason, message = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
        await mark_disrupted(self._context, pod, reason, message)
        self._context.tell(
            PODS,
            pod,
            "TaintManagerEviction",
            f"Marking for deletion Pod {pod.metadata.namespace}/{pod.metadata.name}",
        )
        await self._context.delete(PODS, pod)


async def mark_disrupted(
    context: Context, pod: Pod, reason: str, message: str, *, fail: bool = False
) -> None:
    """Set the pod's `DisruptionTarget` condition: it was ended by the cluster."""
    if conditions.find(pod.status.conditions, "DisruptionTarget") is not None:
        return
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": text(context.now()),
    }
    status = {"conditions": [target]} | ({"phase": "Failed"} if fail else {})
    strategic = PatchType.STRATEGIC
    await context.patch(PODS, pod, {"status": status}, type=strategic, subresource="status")
