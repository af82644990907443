"""One kind in one namespace, followed without a gap.

List, then watch; after a restart go on at the checkpoint; when the server has forgotten that
version, list again and tell only what differs from what was told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.aio.backoff import Backoff
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.discovery import Discovery
from kvestigate.client.watching import transient
from kvestigate.collect.checkpoint import Checkpoint, Known, Mark
from kvestigate.collect.kinds import WorkloadKind
from kvestigate.collect.normalise import normalise
from kvestigate.collect.reading import Workload, read, view_of, workload
from kvestigate.collect.record import EventType, Record, line
from kvestigate.collect.seen import SeenCache, SeenKey
from kvestigate.collect.sidecars import KNOWN, Sidecars
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource

Emit = Callable[[bytes | None, Mark], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Source:
    """What one follower follows."""

    kind: WorkloadKind
    resource: Resource
    namespace: str = ""
    """Empty for all."""

    @property
    def name(self) -> str:
        """`deployments.apps`, `deployments.apps/shop`: the stream's name in checkpoints."""
        where = f"/{self.namespace}" if self.namespace else ""
        return f"{self.resource.qualified}{where}"


@dataclass(frozen=True, slots=True)
class Following:
    """How it is followed."""

    emit_initial: bool = False
    emit_deletes: bool = False
    sidecars: Sidecars = KNOWN


@dataclass(slots=True)
class Followed:
    """Counters of one follower; they only grow."""

    synced: bool = False
    relists: int = 0
    repeats: int = 0
    """Events that were suppressed as seen a moment ago."""
    unreadable: int = 0
    """Objects that are not what their kind promises."""


@dataclass(slots=True)
class Follower:
    api: Api
    source: Source
    checkpoint: Checkpoint
    emit: Emit
    warn: Callable[[str], None]
    following: Following = field(default_factory=Following)
    seen: SeenCache = field(default_factory=SeenCache)
    counts: Followed = field(default_factory=Followed)
    position: str = ""
    """Everything up to this version was emitted, bookmarks included."""

    async def run(self) -> None:
        """Follow until cancelled. A definite no before the first answer is raised."""
        clock = self.api.exchange.policy.clock
        backoff = Backoff(initial=0.8, cap=30.0, jitter=1.0)
        self.position = self.position or self.checkpoint.position(self.source.name)
        while True:
            try:
                if not self.position:
                    await self.list()
                self.counts.synced = True
                await self._watch(backoff)
            except (errors.Expired, errors.Gone):
                self.warn(
                    f"{self.source.name}: resourceVersion {self.position} expired: listing again"
                )
                self.position = ""
            except (errors.ApiError, errors.ConnectionFailed, errors.DeadlineExceeded) as error:
                if not (self.counts.synced or transient(error)):
                    raise
                self.warn(f"{self.source.name}: {error.message}; retrying until the watch works")
            await clock.sleep(backoff.next())

    async def list(self) -> None:
        """Emit what differs from what was told, and take the list's version as position."""
        self.counts.relists += 1
        name = self.source.name
        known = self.checkpoint.known(name)
        # Only the very first list may be silent: afterwards a difference is a change.
        tell = self.following.emit_initial or bool(self.checkpoint.position(name))
        version = ""
        pages = self.api.pages(
            self.source.resource, Selection(self.source.namespace or None), type=msgspec.Raw
        )
        async with aclosing(pages):
            async for page in pages:
                # Of the first page: should the rest be of a newer state, the watch repeats
                # what lies between, and nothing is missed.
                version = version or page.metadata.resource_version
                for raw in page.items:
                    await self._listed(bytes(raw), known, tell)
        for uid, state in known.items():
            await self._vanished(uid, state)
        await self.emit(None, Mark(name, position=version))
        self.position = version

    async def _listed(self, data: bytes, known: dict[str, Known], tell: bool) -> None:
        try:
            workload_now = read(self.source.kind, data)
        except errors.InputError as error:
            self._unreadable(error)
            return
        meta = workload_now.metadata
        before = known.pop(meta.uid, None)
        if before is not None and before.version == meta.resource_version:
            return
        made = self._line(workload_now, "MODIFIED" if before else "ADDED") if tell else None
        await self.emit(made, Mark(self.source.name, "", meta.uid, _state(workload_now)))

    async def _vanished(self, uid: str, state: Known) -> None:
        """It was deleted while nobody looked; how it looked last, nobody knows any more."""
        made = None
        if self.following.emit_deletes:
            made = line(
                Record(
                    namespace=state.namespace,
                    workload_kind=self.source.kind.name,
                    workload_name=state.name,
                    id=f"{uid}@{state.version}-deleted",
                    event="DELETED",
                )
            )
        await self.emit(made, Mark(self.source.name, "", uid))

    async def _watch(self, backoff: Backoff) -> None:
        watch = self.api.watch(
            self.source.resource,
            Selection(self.source.namespace or None),
            resource_version=self.position,
            type=view_of(self.source.kind),
            unreadable=self._unreadable,
        )
        emitted = self.position
        try:
            async with watch:
                async for event in watch:
                    emitted = ""
                    await self._changed(event.type, event.object, watch.resource_version)
                    emitted = self.position = watch.resource_version
                    backoff.reset()
        finally:
            if emitted:  # nothing was cut off halfway: what bookmarks say holds
                self.position = watch.resource_version

    async def _changed(self, type: EventType, view: Any, position: str) -> None:
        name = self.source.name
        try:
            followed = workload(self.source.kind, view)
        except errors.InputError as error:
            self._unreadable(error)
            await self.emit(None, Mark(name, position))
            return
        gone = type == "DELETED"
        state = None if gone else _state(followed)
        made = None
        if self.following.emit_deletes or not gone:
            made = self._line(followed, type)
        await self.emit(made, Mark(name, position, followed.metadata.uid, state))

    def _line(self, seen_workload: Workload, event: EventType) -> bytes | None:
        meta = seen_workload.metadata
        key = SeenKey(meta.namespace, seen_workload.kind.name, meta.name, meta.resource_version)
        if self.seen.seen(key):
            self.counts.repeats += 1
            return None
        try:
            return line(normalise(seen_workload, event, self.following.sidecars))
        except errors.InputError as error:
            self._unreadable(error)
            return None

    def _unreadable(self, error: errors.InputError) -> None:
        self.counts.unreadable += 1
        self.warn(f"{self.source.name}: an object was skipped: {error.message}")


def _state(seen_workload: Workload) -> Known:
    meta = seen_workload.metadata
    return Known(meta.resource_version, meta.namespace, meta.name)


async def sources_of(
    api: Api, kinds: Sequence[WorkloadKind], namespaces: Sequence[str]
) -> tuple[Source, ...]:
    """One source a kind and namespace. The server is asked only about kinds of its own."""
    discovery = Discovery(api)
    sources: list[Source] = []
    for kind in kinds:
        resource = await _resource(discovery, kind)
        for namespace in dict.fromkeys(namespaces) or ("",):
            sources.append(Source(kind, resource, namespace))
    return tuple(sources)


async def _resource(discovery: Discovery, kind: WorkloadKind) -> Resource:
    known = builtins.registry().for_kind(kind.api_version, kind.name)
    if known is not None:
        return known
    resource = (await discovery.registry()).for_kind(kind.api_version, kind.name)
    if resource is None:
        raise errors.UsageError(
            f"the cluster has no kind {kind.name} in {kind.api_version}",
            hint="`kubectl api-resources` lists the kinds and their versions",
        )
    return resource
