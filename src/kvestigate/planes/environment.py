"""`plane snapshot|fork|checkpoint|restore|diff|events|step`: a plane as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from kvestigate.client.access import Access
from kvestigate.errors import UsageError
from kvestigate.operation import duration, param
from kvestigate.planes.manage import Plane, PlaneId, ask
from kvestigate_client import contract

_HIDDEN = "<hidden>"
_SECRETS = ("", "secrets")
_SECRET_FIELDS = ("data", "stringData")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation of kubectl that repeats the whole object."""


Resources = Annotated[
    tuple[str, ...],
    param("Only this resource: pods, deployments.apps.", "--resource", metavar="PLURAL"),
]


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    id: PlaneId
    resources: Resources = ()
    include_empty: Annotated[bool, param("Also list resources without objects.")] = False


@dataclass(frozen=True, slots=True)
class ForkOptions:
    id: PlaneId
    name: Annotated[str, param("Id of the fork; with --count NAME-0000 and so on.")] = ""
    count: Annotated[int, param("Number of forks.", lowest=1, highest=10_000)] | None = None
    checkpoint: Annotated[str, param("Fork from this checkpoint, not from the present.")] = ""


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    id: PlaneId
    name: Annotated[
        str, param("Name of the checkpoint; derived from the revision if not given.")
    ] = ""
    replace: Annotated[bool, param("Overwrite an existing checkpoint of that name.")] = False


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    id: PlaneId
    checkpoint: Annotated[str, param("Checkpoint to restore.")] = ""
    revision: Annotated[str, param("Revision to restore, if the plane still retains it.")] = ""
    seed: (
        Annotated[
            int,
            param(
                "New seed of random choices in virtual time; by default the seed is restored too.",
                metavar="N",
                lowest=-(2**63),
                highest=2**63 - 1,
            ),
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        if bool(self.checkpoint) == bool(self.revision):
            raise UsageError(
                "give either --checkpoint or --revision",
                hint=f"`kvestigate plane events {self.id}` lists revisions",
            )


@dataclass(frozen=True, slots=True)
class DiffOptions:
    id: PlaneId
    before: Annotated[str, param("An earlier state.", argument=True, metavar="FROM")]
    """A revision, `checkpoint:NAME` or `plane:ID`."""
    after: Annotated[str, param("A later state.", argument=True, metavar="[TO]")] = ""
    """Like `before`; the current state if empty."""
    resources: Resources = ()


@dataclass(frozen=True, slots=True)
class EventsOptions:
    id: PlaneId
    since: Annotated[str, param("Only changes after this revision.")] = ""
    resources: Resources = ()
    objects: Annotated[bool, param("With -o json, include the object after each change.")] = False


@dataclass(frozen=True, slots=True)
class StepOptions:
    id: PlaneId
    seconds: (
        Annotated[
            float,
            duration("Virtual time to pass; without it, until no controller has work left."),
        ]
        | None
    ) = None


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
    answer = await ask(
        access,
        contract.snapshot,
        options.id,
        options.resources,
        include_empty=options.include_empty,
    )
    whole = msgspec.json.decode(answer, type=Snapshot)
    resources = [
        msgspec.structs.replace(
            kind, items=[_hide((kind.group, kind.resource), item) for item in kind.items]
        )
        for kind in whole.resources
    ]
    return msgspec.structs.replace(whole, resources=resources)


async def fork(access: Access, options: ForkOptions) -> Forks:
    answer = await ask(
        access,
        contract.fork,
        options.id,
        options.name,
        options.count,
        checkpoint=options.checkpoint,
    )
    return msgspec.json.decode(answer, type=Forks)


async def checkpoint(access: Access, options: CheckpointOptions) -> Checkpoint:
    answer = await ask(
        access, contract.create_checkpoint, options.id, options.name, replace=options.replace
    )
    return msgspec.json.decode(answer, type=Checkpoint)


async def restore(access: Access, options: RestoreOptions) -> Restored:
    answer = await ask(
        access,
        contract.restore,
        options.id,
        options.checkpoint,
        resource_version=options.revision,
        seed=options.seed,
    )
    return msgspec.json.decode(answer, type=Restored)


async def diff(access: Access, options: DiffOptions) -> Difference:
    """Values of Secrets are hidden."""
    answer = await ask(
        access,
        contract.diff,
        options.id,
        options.before,
        options.after or None,
        options.resources,
    )
    whole = msgspec.json.decode(answer, type=Difference)
    changes = []
    for change in whole.changes:
        key = (change.group, change.resource)
        obj = None if change.object is None else _hide(key, change.object)
        fields = [_hide_field(key, field) for field in change.fields]
        changes.append(msgspec.structs.replace(change, object=obj, fields=fields))
    return msgspec.structs.replace(whole, changes=changes)


async def events(access: Access, options: EventsOptions) -> Events:
    """Values of Secrets are hidden."""
    answer = await ask(
        access,
        contract.events,
        options.id,
        options.since or None,
        options.resources,
        objects=options.objects,
    )
    whole = msgspec.json.decode(answer, type=Events)
    shown = [
        event
        if event.object is None
        else msgspec.structs.replace(
            event, object=_hide((event.group, event.resource), event.object)
        )
        for event in whole.events
    ]
    return msgspec.structs.replace(whole, events=shown)


async def step(access: Access, options: StepOptions) -> Stepped:
    answer = await ask(access, contract.step, options.id, options.seconds)
    return msgspec.json.decode(answer, type=Stepped)


def _hide(key: tuple[str, str], obj: dict[str, Any]) -> dict[str, Any]:
    """The object; in a Secret every value is replaced, the keys stay."""
    if key != _SECRETS:
        return obj
    shown = dict(obj)
    for name in _SECRET_FIELDS:
        if isinstance(shown.get(name), dict):
            shown[name] = dict.fromkeys(shown[name], _HIDDEN)
    meta = shown.get("metadata") or {}
    if _LAST_APPLIED in (meta.get("annotations") or {}):
        annotations = {**meta["annotations"], _LAST_APPLIED: _HIDDEN}
        shown["metadata"] = {**meta, "annotations": annotations}
    return shown


def _hide_field(key: tuple[str, str], change: dict[str, Any]) -> dict[str, Any]:
    """The change of a field; of a Secret, the values before and after are replaced."""
    if key != _SECRETS or not _is_secret(change["path"]):
        return change
    return {name: value if name == "path" else _HIDDEN for name, value in change.items()}


def _is_secret(path: str) -> bool:
    return path.partition(".")[0].partition("[")[0] in _SECRET_FIELDS or _LAST_APPLIED in path
