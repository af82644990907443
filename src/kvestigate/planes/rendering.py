"""Planes, their states and fleets as tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvestigate.planes.environment import (
    Checkpoint,
    Difference,
    Events,
    Forks,
    Restored,
    Snapshot,
    Stepped,
)
from kvestigate.planes.fleets import Fleet, Member
from kvestigate.planes.manage import Plane, PlaneList
from kvestigate.render.blocks import Block, Cell, Facts, Field, Table, Tone, table


def planes_blocks(planes: PlaneList | Forks) -> Sequence[Block]:
    return [
        table(
            planes.items,
            Field("ID", lambda plane: plane.id),
            Field("PATH", lambda plane: plane.path or "/"),
            empty="no planes",
        )
    ]


def plane_blocks(plane: Plane) -> Sequence[Block]:
    return [Facts([("plane", plane.id), ("path", plane.path or "/")])]


def snapshot_blocks(snapshot: Snapshot) -> Sequence[Block]:
    facts = [
        ("plane", snapshot.cluster),
        ("revision", snapshot.resource_version),
        ("time", snapshot.snapshot_time),
    ]
    resources = table(
        snapshot.resources,
        Field("RESOURCE", lambda kind: kind.resource),
        Field("GROUP", lambda kind: kind.group),
        Field("OBJECTS", lambda kind: str(kind.item_count), number=True),
        empty="no objects that you may list",
    )
    return [Facts(facts), resources]


def checkpoint_blocks(checkpoint: Checkpoint) -> Sequence[Block]:
    return [Facts([("checkpoint", checkpoint.name), ("revision", checkpoint.resource_version)])]


def restored_blocks(restored: Restored) -> Sequence[Block]:
    return [
        Facts(
            [
                ("plane", restored.cluster),
                ("revision", restored.resource_version),
                ("changes", str(restored.changes)),
            ]
        )
    ]


_TONES = {"ADDED": Tone.GOOD, "MODIFIED": Tone.WARN, "DELETED": Tone.BAD}
_CHANGED: tuple[Field[Any], ...] = (
    Field("CHANGE", lambda change: Cell(change.type.lower(), _TONES[change.type])),
    Field("RESOURCE", lambda change: change.resource),
    Field("OBJECT", lambda change: "/".join(filter(None, (change.namespace, change.name)))),
)


def difference_blocks(difference: Difference) -> Sequence[Block]:
    fields: Field[Any] = Field(
        "FIELDS", lambda change: ", ".join(str(field["path"]) for field in change.fields)
    )
    return [table(difference.changes, *_CHANGED, fields, empty="no differences")]


def events_blocks(events: Events) -> Sequence[Block]:
    made: tuple[Field[Any], ...] = (
        Field("REVISION", lambda event: str(event.revision), number=True),
        Field("TIME", lambda event: event.time),
        Field("ACTOR", lambda event: event.actor),
    )
    return [table(events.events, *made, *_CHANGED, empty="no changes")]


def stepped_blocks(stepped: Stepped) -> Sequence[Block]:
    return [
        Facts(
            [
                ("plane", stepped.cluster),
                ("time", stepped.time),
                ("revision", stepped.resource_version),
                ("changes", str(stepped.changes)),
                ("idle", "yes" if stepped.idle else "no"),
            ]
        )
    ]


def fleet_blocks(fleet: Fleet) -> Sequence[Block]:
    return [_summary(fleet), _members(fleet.status.members)]


def made_fleet_blocks(fleet: Fleet) -> Sequence[Block]:
    """A summary, and only the members that are not Ready: a fleet may have thousands."""
    odd = [member for member in fleet.status.members if member.phase != "Ready"]
    return [_summary(fleet), *([_members(odd)] if odd else [])]


def _summary(fleet: Fleet) -> Facts:
    status = fleet.status
    names = [member.cluster_id for member in status.members]
    shown = f"{names[0]} ... {names[-1]}" if len(names) > 2 else ", ".join(names)
    return Facts(
        [
            ("fleet", fleet.metadata.name),
            ("ready", f"{status.ready_replicas} of {fleet.spec.replicas}"),
            *([("members", shown)] if names else []),
            *(
                (condition.type.lower(), condition.message)
                for condition in status.conditions
                if condition.status != "True"
            ),
        ]
    )


def _members(members: Sequence[Member]) -> Table:
    return table(
        members,
        Field("MEMBER", lambda member: member.cluster_id),
        Field("PHASE", lambda member: Cell(member.phase, _PHASES.get(member.phase, Tone.WARN))),
        Field("MESSAGE", lambda member: member.message),
        empty="no members",
    )


_PHASES = {"Ready": Tone.GOOD, "Failed": Tone.BAD}
