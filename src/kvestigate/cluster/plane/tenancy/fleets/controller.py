"""Brings the planes of every Fleet in line with what it declares.

It watches the Fleets of the root plane from inside the server. What it does to them it does
through the API, as a user of its own; what it copies and puts into copies is decided for the
author of the Fleet. Before members are made their names are written down as
Pending, so that a server that is killed knows at its next start which planes are whose.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.cluster.plane.access.interface import Authorizer
from kvestigate.cluster.plane.model.metadata import timestamp
from kvestigate.cluster.plane.model.request_info import ROOT
from kvestigate.cluster.plane.store.errors import NoPlane, PlaneExists, StoreError
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.tenancy.fleets import rules
from kvestigate.cluster.plane.tenancy.fleets.calls import USER, Calls
from kvestigate.cluster.plane.tenancy.fleets.definition import definition
from kvestigate.cluster.plane.tenancy.fleets.leadership import Leadership
from kvestigate.cluster.plane.tenancy.fleets.model import (
    FAILED,
    FINALIZER,
    FLEETS,
    GROUP,
    PENDING,
    PLURAL,
    READY,
    VERSION,
    Fleet,
    Member,
    Status,
    read,
)
from kvestigate.cluster.plane.tenancy.fleets.seeding import Scenarios, Seeder, no_scenarios
from kvestigate.cluster.plane.tenancy.planes import Planes

_log = logging.getLogger(__name__)

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATH = f"/apis/{GROUP}/{VERSION}/{PLURAL}"
RETRY_SECONDS = 5.0
_TOGETHER = 100
"""Planes that are deleted at the same time."""


class FleetController:
    def __init__(
        self,
        planes: Planes,
        calls: Calls,
        authorizer: Authorizer,
        clock: Clock,
        scenarios: Scenarios = no_scenarios,
        leadership: Leadership | None = None,
    ) -> None:
        """`leadership` is for servers that share their planes."""
        self._leadership = leadership
        self._planes = planes
        self._calls = calls
        self._clock = clock
        self._seeder = Seeder(planes, calls, authorizer, scenarios)
        self._dirty: set[str] = set()
        self._due: dict[str, float] = {}
        """When to look again at a Fleet to which nothing has happened."""
        self._wake = asyncio.Event()
        self._seen: set[str] = set()
        """Fleets that were looked at since the server started."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Fleets are served and looked after for the length of the block."""
        root = await self._planes.open(ROOT)
        await self._install()
        self._planes.on_delete.append(self._deleted)
        work = partial(self._work, root)
        lead = work() if self._leadership is None else self._leadership.lead(work)
        task = asyncio.create_task(lead, name="fleets")
        try:
            yield
        finally:
            self._planes.on_delete.remove(self._deleted)
            task.cancel()
            await asyncio.wait([task])

    async def _work(self, root: Plane) -> None:
        """Look after the Fleets; ends with the store."""
        self._seen.clear()
        following = asyncio.create_task(self._run(root), name="fleets/reconcile")
        try:
            await self._watch(root)
        finally:
            following.cancel()
            await asyncio.wait([following])

    async def _install(self) -> None:
        wanted = definition()
        path = f"{DEFINITIONS}/{wanted['metadata']['name']}"
        try:
            await self._calls.create(DEFINITIONS, wanted)
        except errors.AlreadyExists:
            # Of an older release, maybe.
            await self._calls.merge(path, {"spec": wanted["spec"]})

    async def _watch(self, root: Plane) -> None:
        """Note which Fleets to look at; ends with the store."""
        while True:
            with root.subscribe(FLEETS) as subscription:
                self._note(item.name for item in root.state.collection(FLEETS).items())
                try:
                    async for changes in subscription:
                        self._note(change.item.name for change in changes)
                    return
                except NoPlane:
                    return
                except StoreError:
                    continue  # too many changes at once: look at all

    def _note(self, names: Iterable[str]) -> None:
        self._dirty.update(names)
        if self._dirty:
            self._wake.set()

    def _deleted(self, plane: str) -> None:
        """Somebody's plane is gone: was it a member?"""
        root = self._planes.store.loaded(ROOT)
        if root is not None:
            self._note(item.name for item in root.state.collection(FLEETS).items())

    async def _run(self, root: Plane) -> None:
        while True:
            await self._pause()
            names, self._dirty = sorted(self._dirty), set()
            for name in names:
                try:
                    await self._reconcile(root, name)
                except (errors.ApiError, StoreError) as error:
                    _log.warning("fleet %s: %s; trying again", name, error.message)
                    self._due[name] = self._clock.now() + RETRY_SECONDS
                except Exception:  # noqa: BLE001 - one Fleet must not take the others along
                    _log.exception("fleet %s cannot be looked after", name)

    async def _pause(self) -> None:
        """Until there is a Fleet to look at."""
        while not self._dirty:
            self._wake.clear()
            waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._wake.wait())]
            if self._due:
                left = max(0.0, min(self._due.values()) - self._clock.now())
                waits.append(asyncio.ensure_future(self._clock.sleep(left)))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            now = self._clock.now()
            self._dirty.update(name for name, due in self._due.items() if due <= now)

    async def _reconcile(self, root: Plane, name: str) -> None:
        self._due.pop(name, None)
        item = root.state.get(FLEETS, "", name)
        if item is None:
            self._seen.discard(name)
            return
        fleet = read(item)
        if fleet.metadata.deletion_timestamp:
            await self._end(fleet)
            return
        expiry = rules.fleet_expiry(fleet)
        if expiry is not None and expiry <= self._clock.now():
            await self._tell(fleet, "Expired", f"lived for {fleet.spec.ttl_seconds} s")
            await self._calls.delete(f"{PATH}/{name}")
            return
        if FINALIZER not in fleet.metadata.finalizers:
            held = {"finalizers": [*fleet.metadata.finalizers, FINALIZER]}
            version = fleet.metadata.resource_version
            change = {"metadata": {**held, "resourceVersion": version}}
            await self._calls.merge(f"{PATH}/{name}", change)
            return  # which is a change that is looked at in turn
        await self._fill(root, fleet)

    async def _fill(self, root: Plane, fleet: Fleet) -> None:
        name, now = fleet.metadata.name, self._clock.now()
        planes = frozenset(self._planes.store.planes())
        plan = rules.plan(fleet, planes, now, resumed=name not in self._seen)
        self._seen.add(name)
        await self._remove(plan.remove)
        if plan.remove:
            await self._tell(fleet, "MembersDeleted", f"deleted {len(plan.remove)} members")
        others = [Member(each, FAILED, _TAKEN.format(each)) for each in plan.taken]
        settled = [*plan.keep.values(), *others]
        if plan.make:
            pending = [Member(each, PENDING) for each in plan.make]
            fleet = await self._write(fleet, rules.status_of(fleet, [*settled, *pending], now))
            made = await self._make(fleet, plan.make)
            settled = [*settled, *made]
        fleet = await self._write(fleet, rules.status_of(fleet, settled, self._clock.now()))
        due = rules.next_expiry(fleet)
        if due is not None:
            self._due[name] = due

    async def _make(self, fleet: Fleet, names: Sequence[str]) -> list[Member]:
        """The members after an attempt to make them."""
        failed: list[Member] = []
        wanted = list(names)
        try:
            async with self._seeder.seed(fleet) as seed:
                while wanted:
                    try:
                        made = await self._planes.store.fork(seed.name, wanted)
                    except PlaneExists as error:
                        wanted.remove(error.plane)
                        failed.append(Member(error.plane, FAILED, _TAKEN.format(error.plane)))
                        continue
                    self._set_to_work(fleet, made)
                    break
        except (errors.KvestigateError, msgspec.ValidationError) as error:
            message = error.message if isinstance(error, errors.KvestigateError) else str(error)
            await self._tell(fleet, "MembersFailed", message, kind="Warning")
            return [Member(name, FAILED, message) for name in names]
        if wanted:
            await self._tell(fleet, "MembersCreated", f"created {len(wanted)} members")
        ready = timestamp(self._clock.now())
        return failed + [Member(name, READY, last_transition_time=ready) for name in wanted]

    def _set_to_work(self, fleet: Fleet, made: Sequence[Plane]) -> None:
        template = fleet.spec.template
        if template.objects or template.scenario or template.from_plane or template.from_snapshot:
            for plane in made:
                self._planes.workforce.adopt(plane)

    async def _end(self, fleet: Fleet) -> None:
        """Remove the members, then let the Fleet go."""
        if FINALIZER not in fleet.metadata.finalizers:
            return
        await self._seeder.discard(fleet)
        existing = frozenset(self._planes.store.planes())
        await self._remove(
            [
                member.cluster_id
                for member in fleet.status.members
                if member.owned and member.cluster_id in existing
            ]
        )
        left = [each for each in fleet.metadata.finalizers if each != FINALIZER]
        version = fleet.metadata.resource_version
        change = {"metadata": {"finalizers": left, "resourceVersion": version}}
        await self._calls.merge(f"{PATH}/{fleet.metadata.name}", change)

    async def _remove(self, names: Sequence[str]) -> None:
        for start in range(0, len(names), _TOGETHER):
            async with asyncio.TaskGroup() as group:
                for name in names[start : start + _TOGETHER]:
                    group.create_task(self._delete(name))

    async def _delete(self, name: str) -> None:
        try:
            await self._planes.delete(name)
        except NoPlane:
            pass  # somebody else was faster

    async def _write(self, fleet: Fleet, status: Status) -> Fleet:
        """Say how the Fleet is, unless that has been said."""
        if status == fleet.status:
            return fleet
        change = {
            "metadata": {"resourceVersion": fleet.metadata.resource_version},
            "status": status,
        }
        answer = await self._calls.merge(f"{PATH}/{fleet.metadata.name}/status", change)
        version = answer["metadata"]["resourceVersion"]
        metadata = msgspec.structs.replace(fleet.metadata, resource_version=version)
        return Fleet(metadata, fleet.spec, status)

    async def _tell(self, fleet: Fleet, reason: str, note: str, *, kind: str = "Normal") -> None:
        """An Event about the Fleet; those of cluster-scoped objects are in `default`."""
        now = timestamp(self._clock.now())
        event = {
            "metadata": {"generateName": f"{fleet.metadata.name[:200]}."},
            "involvedObject": {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": "Fleet",
                "name": fleet.metadata.name,
                "uid": fleet.metadata.uid,
                "resourceVersion": fleet.metadata.resource_version,
            },
            "reason": reason,
            "message": note[:1000],
            "type": kind,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": USER.name},
        }
        await self._calls.create("/api/v1/namespaces/default/events", event)


_TAKEN = 'there is a plane "{}" already, and it is not of this Fleet'
