"""What the API is told of one pod: how it is, and that it may go."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kvestigate import errors
from kvestigate.client.api import PODS
from kvestigate.cluster.node.pods.records import ContainerRecord
from kvestigate.cluster.node.pods.station import Station
from kvestigate.cluster.node.pods.status import Place, pod_status
from kvestigate.cluster.node.spec.pod import Pod


class Reporter:
    def __init__(self, station: Station) -> None:
        self._station = station
        self._written = b""
        """The status that was written last, as JSON: of thousands of pods most never change."""

    async def report(
        self, pod: Pod, records: Mapping[str, ContainerRecord], started_at: float
    ) -> bool:
        """Whether the API knows how the pod is."""
        status = pod_status(
            pod,
            records,
            self._station.clock.now(),
            started_at=started_at,
            place=self._place(pod, records),
            before=msgspec.json.decode(self._written) if self._written else None,
        )
        written = msgspec.json.encode(status)
        if written == self._written:
            return True
        try:
            await self._station.patch_status(pod, status)
        except (errors.NotFound, errors.Conflict):
            return False  # deleted or replaced meanwhile: the watch will tell
        self._written = written
        return True

    def _place(self, pod: Pod, records: Mapping[str, ContainerRecord]) -> Place:
        begun = any(record.run is not None for record in records.values())
        return Place(self._station.config.address, self._station.pod_ip(pod) if begun else "")

    def goes_unseen(self, pod: Pod) -> bool:
        """Whether its end would be read by nobody: without finalizers it is gone with our word."""
        return self._station.config.terse and pod.terminating and not pod.metadata.finalizers

    async def let_go(self, pod: Pod) -> None:
        """The API server waits for the node's word before a pod that is deleted really goes."""
        if not pod.terminating:
            return
        meta = pod.metadata
        try:
            await self._station.api.delete(
                PODS, meta.name, namespace=meta.namespace, grace_seconds=0, uid=meta.uid, type=bytes
            )
        except (errors.NotFound, errors.Conflict):
            pass
