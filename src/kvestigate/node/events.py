"""Events about pods and nodes, written beside the work and counted when they repeat."""

from __future__ import annotations

import asyncio
import zlib
from collections import OrderedDict
from typing import Any

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.client.api import Api
from kvestigate.kube.resources import Resource
from kvestigate.node.status import stamp

EVENTS = Resource("", "v1", "events", "Event")

_WAITING = 1000
"""Events that may wait for the server; beyond that the newest are dropped, as it is hurt enough."""
_REMEMBERED = 4096

_Same = tuple[str, str, str, str]


class Recorder:
    """Writes events in the order they came. `run` it in a task."""

    def __init__(self, api: Api, clock: Clock, *, node: str) -> None:
        self._api = api
        self._clock = clock
        self._node = node
        self._queue: asyncio.Queue[tuple[dict[str, Any], str, str, str]] = asyncio.Queue(_WAITING)
        self._seen: OrderedDict[_Same, tuple[str, int]] = OrderedDict()
        self._number = 0

    def record(self, about: dict[str, Any], type: str, reason: str, message: str) -> None:
        """`about` is an object reference; `type` is `Normal` or `Warning`."""
        try:
            self._queue.put_nowait((about, type, reason, message))
        except asyncio.QueueFull:
            pass

    async def run(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                await self._write(*event)
            except errors.KvestigateError:
                pass  # an event that cannot be written is nobody's failure

    async def _write(self, about: dict[str, Any], type: str, reason: str, message: str) -> None:
        same = (about.get("uid", ""), about.get("fieldPath", ""), reason, message)
        namespace = about.get("namespace") or "default"
        now = stamp(self._clock.now())
        if same in self._seen:
            name, count = self._seen[same]
            self._seen[same] = (name, count + 1)
            change = {"count": count + 1, "lastTimestamp": now}
            try:
                await self._api.patch(EVENTS, name, change, namespace=namespace)
                return
            except errors.NotFound:
                pass  # expired: write a new one
        # The number sets events of one instant apart, and the node those of many nodes.
        self._number += 1
        instant = int(self._clock.now() * 1e9) + self._number
        name = f"{about['name']}.{instant:x}{zlib.crc32(self._node.encode()) & 0xFFFF:04x}"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": about,
            "type": type,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": "kubelet", "host": self._node},
            "reportingComponent": "kubelet",
            "reportingInstance": self._node,
        }
        self._seen[same] = (name, 1)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        await self._api.create(EVENTS, event, namespace=namespace)
