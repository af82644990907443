"""Tells users what became of their pods, as events of the `events.k8s.io` group."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.client.api import Api
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.pods import Pod

_log = logging.getLogger(__name__)

EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
NOTE_LIMIT = 1024
"""What an API server takes as a note."""
_PENDING = 10_000
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class News:
    """One thing that happened to a pod."""

    pod: Pod
    type: str
    """`Normal` or `Warning`"""
    reason: str
    action: str
    """What the scheduler was doing."""
    note: str
    related: Pod | None = None


@dataclass(slots=True)
class _Told:
    name: str
    count: int


class Recorder:
    """Writes events in their order, beside the work; what cannot be written is lost."""

    def __init__(self, api: Api, clock: Clock, controller: str, host: str) -> None:
        self._api = api
        self._clock = clock
        self._controller = controller
        self._instance = f"{controller}-{host}"[:128]
        self._queue: asyncio.Queue[News] = asyncio.Queue(_PENDING)
        self._told: OrderedDict[tuple[str, str, str], _Told] = OrderedDict()
        self._number = 0

    def tell(self, news: News) -> None:
        try:
            self._queue.put_nowait(news)
        except asyncio.QueueFull:
            _log.debug("too many events: dropped %s of %s", news.reason, news.pod.metadata.name)

    async def run(self) -> None:
        while True:
            news = await self._queue.get()
            try:
                await self._write(news)
            except errors.KvestigateError as error:
                _log.debug("event %s was not written: %s", news.reason, error)
            finally:
                self._queue.task_done()

    async def drain(self) -> None:
        """Wait until all that was told is written."""
        await self._queue.join()

    async def _write(self, news: News) -> None:
        identity = (news.pod.metadata.uid, news.reason, news.note)
        known = self._told.get(identity)
        if known is not None:
            known.count += 1
            try:
                await self._count(news, known)
            except errors.NotFound:  # it has expired
                pass
            else:
                return
        self._told[identity] = _Told(await self._create(news), 1)
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

    async def _create(self, news: News) -> str:
        namespace = news.pod.metadata.namespace
        # The number sets events of one instant apart, which a clock that stands still makes.
        self._number += 1
        name = f"{news.pod.metadata.name}.{int(self._clock.now() * 1e9) + self._number:x}"
        body: dict[str, Any] = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": self._now(),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": news.action,
            "reason": news.reason,
            "regarding": _reference(news.pod),
            "note": news.note if len(news.note) <= NOTE_LIMIT else f"{news.note[:1020]} ...",
            "type": news.type,
        }
        if news.related is not None:
            body["related"] = _reference(news.related)
        await self._api.create(EVENTS, body, namespace=namespace, type=bytes)
        return name

    async def _count(self, news: News, known: _Told) -> None:
        patch = {"series": {"count": known.count, "lastObservedTime": self._now()}}
        namespace = news.pod.metadata.namespace
        await self._api.patch(EVENTS, known.name, patch, namespace=namespace, type=bytes)

    def _now(self) -> str:
        moment = datetime.fromtimestamp(self._clock.now(), UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _reference(pod: Pod) -> dict[str, str]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version,
    }
