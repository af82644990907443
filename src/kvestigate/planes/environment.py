"""`plane snapshot|fork|checkpoint|restore|diff|events|step`: a plane as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from kvestigate.client.access import Access
from kvestigate.operation import Effect, Operation
from kvestigate.planes.manage import PATH, Plane, ask
from kvestigate.planes.secrets import hide, hide_field

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    id: str
    resources: tuple[str, ...] = ()
    """`pods`, `deployments.apps`; everything if none."""
    include_empty: bool = False


@dataclass(frozen=True, slots=True)
class ForkOptions:
    id: str
    name: str = ""
    """Of the fork, or what `-0000` and so on follow if there is a count."""
    count: int | None = None
    checkpoint: str = ""
    """Where to fork from, instead of the present."""


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    id: str
    name: str = ""
    replace: bool = False


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    id: str
    checkpoint: str = ""
    revision: str = ""
    seed: int | None = None
    """None: as it was then."""


@dataclass(frozen=True, slots=True)
class DiffOptions:
    id: str
    before: str
    """A revision, `checkpoint:NAME` or `plane:ID`."""
    after: str = ""
    """The present if empty."""
    resources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EventsOptions:
    id: str
    since: str = ""
    """The last revision that is known; the oldest that is retained if empty."""
    resources: tuple[str, ...] = ()
    objects: bool = False


@dataclass(frozen=True, slots=True)
class StepOptions:
    id: str
    seconds: float | None = None
    """Until nothing is left to do if None."""


class Resource(Struct, frozen=True, rename="camel"):
    group: str
    resource: str
    synced: bool
    item_count: int
    items: list[dict[str, Any]]


class Snapshot(Struct, frozen=True, rename="camel", omit_defaults=True):
    cluster: str
    snapshot_time: str
    resource_version: str
    live_resources: int
    resources: list[Resource]
    omitted: list[dict[str, str]] = []


class Forks(Struct, frozen=True, rename="camel"):
    cluster: str
    resource_version: str
    items: list[Plane]


class Checkpoint(Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str


class Restored(Struct, frozen=True, rename="camel"):
    cluster: str
    resource_version: str
    changes: int


class ObjectChange(Struct, frozen=True, omit_defaults=True):
    type: str
    group: str
    resource: str
    namespace: str
    name: str
    object: dict[str, Any] | None = None
    fields: list[dict[str, Any]] = []


class Difference(Struct, frozen=True, rename={"before": "from", "after": "to"}):
    cluster: str
    before: dict[str, str]
    after: dict[str, str]
    summary: dict[str, int]
    changes: list[ObjectChange]


class Event(Struct, frozen=True, omit_defaults=True):
    revision: int
    type: str
    actor: str
    time: str
    group: str
    resource: str
    namespace: str
    name: str
    object: dict[str, Any] | None = None


class Events(Struct, frozen=True, rename="camel"):
    cluster: str
    from_revision: int
    to_revision: int
    events: list[Event]


class Stepped(Struct, frozen=True, rename="camel"):
    cluster: str
    time: str
    resource_version: str
    changes: int
    idle: bool


async def snapshot(access: Access, options: SnapshotOptions) -> Snapshot:
    """Values of Secrets are hidden."""
    query = _query(resource=",".join(options.resources), includeEmpty=options.include_empty)
    found = msgspec.json.decode(
        await ask(access, "GET", _path(options.id, "snapshot"), query=query), type=Snapshot
    )
    resources = [
        msgspec.structs.replace(
            each, items=[hide((each.group, each.resource), item) for item in each.items]
        )
        for each in found.resources
    ]
    return msgspec.structs.replace(found, resources=resources)


async def fork(access: Access, options: ForkOptions) -> Forks:
    body: dict[str, Any] = {"name": options.name, "checkpoint": options.checkpoint}
    if options.count is not None:
        body["count"] = options.count
    return await _post(access, options.id, "fork", body, Forks)


async def checkpoint(access: Access, options: CheckpointOptions) -> Checkpoint:
    body = {"name": options.name, "replace": options.replace}
    return await _post(access, options.id, "checkpoints", body, Checkpoint)


async def restore(access: Access, options: RestoreOptions) -> Restored:
    body = {
        "checkpoint": options.checkpoint,
        "resourceVersion": options.revision,
        "seed": options.seed,
    }
    return await _post(access, options.id, "restore", body, Restored)


async def diff(access: Access, options: DiffOptions) -> Difference:
    """Values of Secrets are hidden."""
    query = _query(
        **{"from": options.before}, to=options.after, resource=",".join(options.resources)
    )
    found = msgspec.json.decode(
        await ask(access, "GET", _path(options.id, "diff"), query=query), type=Difference
    )
    changes = []
    for each in found.changes:
        key = (each.group, each.resource)
        obj = None if each.object is None else hide(key, each.object)
        fields = [hide_field(key, field) for field in each.fields]
        changes.append(msgspec.structs.replace(each, object=obj, fields=fields))
    return msgspec.structs.replace(found, changes=changes)


async def events(access: Access, options: EventsOptions) -> Events:
    """Values of Secrets are hidden."""
    query = _query(
        fromRevision=options.since,
        resource=",".join(options.resources),
        objects="true" if options.objects else "false",
    )
    found = msgspec.json.decode(
        await ask(access, "GET", _path(options.id, "events"), query=query), type=Events
    )
    shown = [
        each
        if each.object is None
        else msgspec.structs.replace(each, object=hide((each.group, each.resource), each.object))
        for each in found.events
    ]
    return msgspec.structs.replace(found, events=shown)


async def step(access: Access, options: StepOptions) -> Stepped:
    body: dict[str, Any] = {"untilIdle": True}
    if options.seconds is not None:
        body = {"seconds": options.seconds}
    return await _post(access, options.id, "step", body, Stepped)


async def _post(
    access: Access, plane: str, what: str, body: dict[str, Any], type: type[_Answer]
) -> _Answer:
    sent = msgspec.json.encode(body)
    return msgspec.json.decode(await ask(access, "POST", _path(plane, what), sent), type=type)


def _path(plane: str, what: str) -> str:
    return f"{PATH}/{plane}/control-plane/{what}"


def _query(**params: Any) -> str:
    given = {key: "true" if value is True else value for key, value in params.items() if value}
    return urlencode(given)


SNAPSHOT = Operation(
    name="plane.snapshot",
    summary="Show everything in a plane at one revision.",
    input=SnapshotOptions,
    output=Snapshot,
    effect=Effect.READ,
    handler=snapshot,
)
FORK = Operation(
    name="plane.fork",
    summary="Make copies of a plane that are independent from then on.",
    input=ForkOptions,
    output=Forks,
    effect=Effect.WRITE,
    handler=fork,
)
CHECKPOINT = Operation(
    name="plane.checkpoint",
    summary="Keep the present state of a plane under a name.",
    input=CheckpointOptions,
    output=Checkpoint,
    effect=Effect.WRITE,
    handler=checkpoint,
)
RESTORE = Operation(
    name="plane.restore",
    summary="Put a plane back to where it was.",
    input=RestoreOptions,
    output=Restored,
    effect=Effect.DESTROY,
    handler=restore,
)
DIFF = Operation(
    name="plane.diff",
    summary="Show what differs between two states of a plane, or two planes.",
    input=DiffOptions,
    output=Difference,
    effect=Effect.READ,
    handler=diff,
)
EVENTS = Operation(
    name="plane.events",
    summary="Show every change of a plane, with its actor.",
    input=EventsOptions,
    output=Events,
    effect=Effect.READ,
    handler=events,
)
STEP = Operation(
    name="plane.step",
    summary="Let time pass in a plane with a virtual clock.",
    input=StepOptions,
    output=Stepped,
    effect=Effect.WRITE,
    handler=step,
)

OPERATIONS = (SNAPSHOT, FORK, CHECKPOINT, RESTORE, DIFF, EVENTS, STEP)
