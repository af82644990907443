"""Events: what programs tell people about objects, told once and then counted.

The same news about the same object raises a count instead of making another event; many
similar ones within ten minutes are combined; and one object's flood is held back. These are
client-go's rules, so `kubectl describe` reads as people know it.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.client.api import Api
from kvestigate.kube import builtins
from kvestigate.kube.times import text

_log = logging.getLogger(__name__)

EVENTS = builtins.resource("events")

NORMAL, WARNING = "Normal", "Warning"

_SIMILAR = 10
"""Different messages of one reason before they are combined."""
_SIMILAR_WITHIN = 600.0
_BURST, _REFILL = 25, 1 / 300.0
"""News of one object: so many at once, and one more every five minutes."""
_REMEMBERED = 4096
_WAITING = 1000

K = TypeVar("K")
W = TypeVar("W")

Reference = tuple[tuple[str, str], ...]
"""The reference to an object, as items."""


class Recent(OrderedDict[K, W], Generic[K, W]):
    """A dict that forgets the least recently used."""

    def note(self, key: K, value: W) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > _REMEMBERED:
            self.popitem(last=False)


class News(msgspec.Struct, frozen=True):
    """One thing to tell about one object."""

    about: Reference
    source: str
    """The program that tells it: `kubelet`."""
    type: str
    reason: str
    message: str
    host: str = ""
    """Where that program runs, if that matters."""

    @property
    def object(self) -> Reference:
        """What it is about, whatever version it had."""
        return tuple(item for item in self.about if item[0] != "resourceVersion")


@dataclass(slots=True)
class _Told:
    name: str
    count: int


@dataclass(slots=True)
class _Similar:
    messages: dict[str, None]
    last: float


@dataclass(slots=True)
class _Allowance:
    left: float
    at: float


class Recorder:
    """Queues events and writes them in their order. `run` it in a task."""

    def __init__(self, api: Api, clock: Clock, *, waiting: int = _WAITING) -> None:
        """Beyond `waiting` news are dropped: they must never hold up the work they tell of."""
        self._queue: asyncio.Queue[News] = asyncio.Queue(waiting)
        self._api = api
        self._clock = clock
        self._number = 0
        self._told: Recent[Any, _Told] = Recent()
        self._similar: Recent[Any, _Similar] = Recent()
        self._allowances: Recent[Any, _Allowance] = Recent()

    def tell(self, news: News) -> None:
        try:
            self._queue.put_nowait(news)
        except asyncio.QueueFull:
            _log.debug("too many events: dropped %s", news)

    async def run(self) -> None:
        while True:
            news = await self._queue.get()
            try:
                await self._write(news)
            except errors.KvestigateError as error:
                # As with client-go, an event that cannot be written is lost.
                _log.debug("%s was not written: %s", news, error)
            finally:
                self._queue.task_done()

    async def drain(self) -> None:
        """Wait until all that was told is written."""
        await self._queue.join()

    async def _write(self, news: News) -> None:
        now, subject = self._clock.now(), (news.source, news.object)
        if not self._allowed(subject, now):
            return
        identity, message = self._combined(news, subject, now)
        known = self._told.get(identity)
        if known is not None:
            known.count += 1
            try:
                await self._count(news, known, message, now)
            except errors.NotFound:  # it has expired
                del self._told[identity]
            else:
                self._told.move_to_end(identity)
                return
        name = await self._create(news, message, now)
        self._told.note(identity, _Told(name, 1))

    def _allowed(self, subject: tuple[str, Reference], now: float) -> bool:
        allowance = self._allowances.get(subject) or _Allowance(_BURST, now)
        left = min(_BURST, allowance.left + (now - allowance.at) * _REFILL)
        self._allowances.note(subject, _Allowance(left - 1 if left >= 1 else left, now))
        return left >= 1

    def _combined(self, news: News, subject: tuple[str, Reference], now: float) -> tuple[Any, str]:
        kind = (*subject, news.type, news.reason)
        similar = self._similar.get(kind)
        if similar is None or now - similar.last > _SIMILAR_WITHIN:
            similar = _Similar({}, now)
        similar.messages[news.message] = None
        similar.last = now
        self._similar.note(kind, similar)
        if len(similar.messages) < _SIMILAR:
            return (*kind, news.message), news.message
        similar.messages.popitem()
        return kind, f"(combined from similar events): {news.message}"

    async def _create(self, news: News, message: str, now: float) -> str:
        about = dict(news.about)
        namespace = about.get("namespace") or "default"
        # The number sets events of one instant apart, and the source those of many recorders.
        self._number += 1
        instant = int(now * 1e9) + self._number
        name = f"{about['name']}.{instant:x}{_salt(news.source, news.host)}"
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": about,
            "reason": news.reason,
            "message": message,
            "source": {"component": news.source} | ({"host": news.host} if news.host else {}),
            "reportingComponent": news.source,
            "reportingInstance": news.host,
            "type": news.type,
            "count": 1,
            "firstTimestamp": text(now),
            "lastTimestamp": text(now),
        }
        try:
            await self._api.create(EVENTS, body, namespace=namespace, type=bytes)
        except errors.AlreadyExists:
            # An earlier recorder told something in this very instant, where a clock stood still.
            metadata = {"generateName": f"{name}.", "namespace": namespace}
            event = await self._api.create(
                EVENTS, body | {"metadata": metadata}, namespace=namespace
            )
            name = event["metadata"]["name"]
        return name

    async def _count(self, news: News, known: _Told, message: str, now: float) -> None:
        namespace = dict(news.about).get("namespace") or "default"
        patch = {"count": known.count, "lastTimestamp": text(now), "message": message}
        await self._api.patch(EVENTS, known.name, patch, namespace=namespace, type=bytes)


def _salt(source: str, host: str) -> str:
    return f"{zlib.crc32(f'{source}/{host}'.encode()) & 0xFFFF:04x}"
