"""Records the scheduler's events, in the `events.k8s.io` group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.client.api import Api
from kvestigate.client.recorder import Recent, Teller
from kvestigate.kube.resources import Resource
from kvestigate.kube.times import micro_text
from kvestigate.kube.views.pods import Pod

EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
NOTE_LIMIT = 1024
"""What an API server takes as a note."""
_WAITING = 10_000
"""As many pods may come at once."""


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


class Recorder(Teller[News]):
    """Writes events of the newer group, with a series where they repeat."""

    def __init__(self, api: Api, clock: Clock, controller: str, host: str) -> None:
        super().__init__(waiting=_WAITING)
        self._api = api
        self._clock = clock
        self._controller = controller
        self._instance = f"{controller}-{host}"[:128]
        self._told: Recent[tuple[str, str, str], _Told] = Recent()
        self._number = 0

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
        self._told.note(identity, _Told(await self._create(news), 1))

    async def _create(self, news: News) -> str:
        namespace = news.pod.metadata.namespace
        # The number sets events of one instant apart, which a clock that stands still makes.
        self._number += 1
        name = f"{news.pod.metadata.name}.{int(self._clock.now() * 1e9) + self._number:x}"
        body: dict[str, Any] = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": micro_text(self._clock.now()),
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
        seen = micro_text(self._clock.now())
        patch = {"series": {"count": known.count, "lastObservedTime": seen}}
        namespace = news.pod.metadata.namespace
        await self._api.patch(EVENTS, known.name, patch, namespace=namespace, type=bytes)


def _reference(pod: Pod) -> dict[str, str]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version,
    }
