"""Events: what controllers tell people, told once and then counted.

The same news about the same object raises a count instead of making another event; many
similar ones within ten minutes are combined; and one object's flood is held back. These are
client-go's rules, so `kubectl describe` reads as people know it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.client.api import Api
from kvestigate.client.informer import Named
from kvestigate.controllers.kinds import Kind
from kvestigate.controllers.times import text
from kvestigate.kube import builtins

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
"""Beyond it events are dropped: they must never hold up the work that they tell of."""

K = TypeVar("K")
W = TypeVar("W")


class _Recent(OrderedDict[K, W], Generic[K, W]):
    """A dict that forgets the least recently used."""

    def note(self, key: K, value: W) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > _REMEMBERED:
            self.popitem(last=False)


@dataclass(frozen=True, slots=True)
class News:
    """One thing to tell about one object."""

    plane: str
    about: tuple[tuple[str, str], ...]
    """The reference to the object, as items."""
    source: str
    type: str
    reason: str
    message: str


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


def reference(kind: Kind[Any], view: Named) -> tuple[tuple[str, str], ...]:
    """The ObjectReference of an object."""
    metadata = view.metadata
    found = {
        "kind": kind.resource.kind,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "apiVersion": kind.resource.api_version,
        "resourceVersion": metadata.resource_version,
    }
    return tuple((key, value) for key, value in found.items() if value)


class Recorder:
    """Takes news at once, writes them in its own time. `run` it in a task."""

    def __init__(self, api: Callable[[str], Api], clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._queue: asyncio.Queue[News] = asyncio.Queue(_WAITING)
        self._told: _Recent[Any, _Told] = _Recent()
        self._similar: _Recent[Any, _Similar] = _Recent()
        self._allowances: _Recent[Any, _Allowance] = _Recent()

    def tell(self, news: News) -> None:
        try:
            self._queue.put_nowait(news)
        except asyncio.QueueFull:
            _log.debug("too many events: dropped %s of %s", news.reason, news.about)

    async def run(self) -> None:
        while True:
            news = await self._queue.get()
            try:
                await self._write(news)
            except errors.KvestigateError as error:
                # As with client-go, an event that cannot be written is lost.
                _log.debug("event %s was not written: %s", news.reason, error)
            finally:
                self._queue.task_done()

    async def drain(self) -> None:
        """Wait until all that was told is written."""
        await self._queue.join()

    async def _write(self, news: News) -> None:
        now = self._clock.now()
        if not self._allowed(news, now):
            return
        identity, message = self._combined(news, now)
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

    def _allowed(self, news: News, now: float) -> bool:
        key = (news.plane, news.source, _identity(news))
        allowance = self._allowances.get(key) or _Allowance(_BURST, now)
        left = min(_BURST, allowance.left + (now - allowance.at) * _REFILL)
        self._allowances.note(key, _Allowance(left - 1 if left >= 1 else left, now))
        return left >= 1

    def _combined(self, news: News, now: float) -> tuple[Any, str]:
        kind = (news.plane, news.source, _identity(news), news.type, news.reason)
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
        name = f"{about['name']}.{int(now * 1e9):x}"
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": about,
            "reason": news.reason,
            "message": message,
            "source": {"component": news.source},
            "reportingComponent": news.source,
            "reportingInstance": "",
            "type": news.type,
            "count": 1,
            "firstTimestamp": text(now),
            "lastTimestamp": text(now),
        }
        try:
            await self._api(news.plane).create(EVENTS, body, namespace=namespace, type=bytes)
        except errors.AlreadyExists:
            # Two in one instant of the clock, which is the rule when a test holds it still.
            metadata = {"generateName": f"{name}.", "namespace": namespace}
            made = await self._api(news.plane).create(
                EVENTS, body | {"metadata": metadata}, namespace=namespace
            )
            name = made["metadata"]["name"]
        return name

    async def _count(self, news: News, known: _Told, message: str, now: float) -> None:
        namespace = dict(news.about).get("namespace") or "default"
        patch = {"count": known.count, "lastTimestamp": text(now), "message": message}
        await self._api(news.plane).patch(
            EVENTS, known.name, patch, namespace=namespace, type=bytes
        )


def _identity(news: News) -> tuple[tuple[str, str], ...]:
    return tuple(item for item in news.about if item[0] != "resourceVersion")
