"""Writes decisions down: bindings and their volumes, conditions of pods, and evictions."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.client.api import PODS, Api, PatchType
from kvestigate.client.cache import Key
from kvestigate.cluster.scheduler.following import CLAIMS, VOLUMES, Follower
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.feasibility.volumes import SELECTED_NODE, Plan
from kvestigate.kube.times import text
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.storage import PersistentVolumeClaim

VOLUMES_TIMEOUT = 600.0
"""Seconds that a pod's volumes have to be made."""


class Writer:
    """What the scheduler asks of the API server."""

    def __init__(self, api: Api, clock: Clock, follower: Follower, state: ClusterState) -> None:
        self._api = api
        self._clock = clock
        self._follower = follower
        self._state = state

    async def bind(self, pod: PodFacts, node: str) -> None:
        await self._api.bind(pod.key.name, node, namespace=pod.key.namespace, uid=pod.uid)

    async def condition(self, pod: Pod, reason: str, message: str, nominated: str | None) -> None:
        """Tell in the pod's status why it has no node; `nominated` is where it may get one."""
        patch: dict[str, Any] = {}
        wanted = {"status": "False", "reason": reason, "message": message}
        known = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        if known is None or (known.status, known.reason, known.message) != tuple(wanted.values()):
            changed = known is None or known.status != "False"
            condition = {"type": "PodScheduled", **wanted, "lastProbeTime": None}
            if changed:
                condition["lastTransitionTime"] = self._now()
            patch["conditions"] = [condition]
        if nominated is not None and nominated != pod.status.nominated_node_name:
            patch["nominatedNodeName"] = nominated or None
        if patch:
            await self._status(pod, patch)

    async def forget_nomination(self, pod: Pod) -> None:
        await self._status(pod, {"nominatedNodeName": None})

    async def evict(self, victim: PodFacts, scheduler: str) -> None:
        """Delete a pod to make room, and say so in its status first."""
        pod = victim.pod
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": self._now(),
        }
        await self._status(pod, {"conditions": [condition]})
        await self._api.delete(
            PODS, victim.key.name, namespace=victim.key.namespace, uid=victim.uid, type=bytes
        )

    async def prepare_volumes(self, plan: Plan, node: str) -> None:
        """Ask for a pod's volumes and wait until it has them."""
        for key, volume in plan.found:
            claim = self._state.claims[key]
            patch = {"spec": {"claimRef": _claim_reference(claim)}}
            await self._api.patch(VOLUMES, volume, patch, type=bytes)
        for key in plan.to_make:
            patch = {"metadata": {"annotations": {SELECTED_NODE: node}}}
            await self._api.patch(CLAIMS, key.name, patch, namespace=key.namespace, type=bytes)
        keys = [key for key, _ in plan.found] + list(plan.to_make)
        late = f"the volumes of {', '.join(map(str, keys))} were not ready in time"
        await in_time(self._clock, VOLUMES_TIMEOUT, self._all_bound(keys), late)

    async def _all_bound(self, keys: list[Key]) -> None:
        for key in keys:
            while not self._bound(key):
                await self._follower.changed(CLAIMS, key)

    def _bound(self, key: Key) -> bool:
        claim = self._state.claims.get(key)
        if claim is None:
            raise errors.NotFound(f'persistentvolumeclaim "{key.name}" not found')
        return bool(claim.spec.volume_name) and claim.status.phase == "Bound"

    async def _status(self, pod: Pod, status: dict[str, Any]) -> None:
        await self._api.patch(
            PODS,
            pod.metadata.name,
            {"metadata": {"uid": pod.metadata.uid}, "status": status},
            PatchType.STRATEGIC,
            namespace=pod.metadata.namespace,
            subresource="status",
            type=bytes,
        )

    def _now(self) -> str:
        return text(self._clock.now())


async def in_time(clock: Clock, seconds: float, work: Coroutine[Any, Any, None], late: str) -> None:
    """Wait for the work; DeadlineExceeded with this message if it takes longer."""
    waiting = asyncio.ensure_future(work)
    limit = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({waiting, limit}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise errors.DeadlineExceeded(late)
        await waiting
    finally:
        waiting.cancel()
        limit.cancel()


def _claim_reference(claim: PersistentVolumeClaim) -> dict[str, str]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
