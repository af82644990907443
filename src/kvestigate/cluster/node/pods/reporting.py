"""Writes one pod's status to the API, and confirms its deletion."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kvestigate import errors
from kvestigate.client.api import PODS, Api
from kvestigate.cluster.node.pods.context import NodeContext
from kvestigate.cluster.node.pods.records import ContainerRecord
from kvestigate.cluster.node.pods.status import Place, pod_status
from kvestigate.cluster.node.spec.pod import Pod


class Reporter:
    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._written = b""
        """The status that was written last, as JSON: of thousands of pods most never change."""

    async def report(
        self, pod: Pod, records: Mapping[str, ContainerRecord], started_at: float
    ) -> bool:
        """Write the status if it changed; False if the pod is gone from the API."""
        status = pod_status(
            pod,
            records,
            self._context.clock.now(),
            started_at=started_at,
            place=self._place(pod, records),
            before=msgspec.json.decode(self._written) if self._written else None,
        )
        written = msgspec.json.encode(status)
        if written == self._written:
            return True
        try:
            await self._context.patch_status(pod, status)
        except (errors.NotFound, errors.Conflict):
            return False  # deleted or replaced meanwhile: the watch will tell
        self._written = written
        return True

    def _place(self, pod: Pod, records: Mapping[str, ContainerRecord]) -> Place:
        begun = any(record.run is not None for record in records.values())
        return Place(self._context.config.address, self._context.pod_ip(pod) if begun else "")

    def end_is_unseen(self, pod: Pod) -> bool:
        """Whether no client could read the last status: a pod without finalizers is gone as soon as
        its node confirms the deletion."""
        return self._context.config.terse and pod.terminating and not pod.metadata.finalizers


async def confirm_deletion(api: Api, pod: Pod) -> None:
    """The API server keeps a deleted pod until its node says that nothing of it runs any more."""
    if not pod.terminating:
        return
    meta = pod.metadata
    try:
        await api.delete(
            PODS, meta.name, namespace=meta.namespace, grace_seconds=0, uid=meta.uid, type=bytes
        )
    except (errors.NotFound, errors.Conflict):
        pass
