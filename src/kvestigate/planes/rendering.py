"""Planes, their states and fleets as tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence

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
from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone


def planes_blocks(planes: PlaneList) -> Sequence[Block]:
    columns = [Column("ID"), Column("PATH")]
    rows = [(plane.id, plane.path or "/") for plane in planes.items]
    return [Table(columns, rows, empty="no planes")]


def plane_blocks(plane: Plane) -> Sequence[Block]:
    return [Facts([("plane", plane.id), ("path", plane.path or "/")])]


def snapshot_blocks(snapshot: Snapshot) -> Sequence[Block]:
    facts = [
        ("plane", snapshot.cluster),
        ("revision", snapshot.resource_version),
        ("time", snapshot.snapshot_time),
    ]
    columns = [Column("RESOURCE"), Column("GROUP"), Column("OBJECTS", number=True)]
    rows = [(each.resource, each.group, str(each.item_count)) for each in snapshot.resources]
    return [Facts(facts), Table(columns, rows, empty="no objects that you may list")]


def forks_blocks(forks: Forks) -> Sequence[Block]:
    return planes_blocks(PlaneList(forks.items))


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


def difference_blocks(difference: Difference) -> Sequence[Block]:
    columns = [Column("CHANGE"), Column("RESOURCE"), Column("OBJECT"), Column("FIELDS")]
    rows = [
        (
            Cell(each.type.lower(), _TONES[each.type]),
            each.resource,
            _place(each.namespace, each.name),
            ", ".join(str(field["path"]) for field in each.fields),
        )
        for each in difference.changes
    ]
    return [Table(columns, rows, empty="no differences")]


def events_blocks(events: Events) -> Sequence[Block]:
    columns = [
        Column("REVISION", number=True),
        Column("TIME"),
        Column("ACTOR"),
        Column("CHANGE"),
        Column("RESOURCE"),
        Column("OBJECT"),
    ]
    rows = [
        (
            str(each.revision),
            each.time,
            each.actor,
            Cell(each.type.lower(), _TONES[each.type]),
            each.resource,
            _place(each.namespace, each.name),
        )
        for each in events.events
    ]
    return [Table(columns, rows, empty="no changes")]


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
    odd = [each for each in fleet.status.members if each.phase != "Ready"]
    return [_summary(fleet), *([_members(odd)] if odd else [])]


def _summary(fleet: Fleet) -> Facts:
    status = fleet.status
    names = [each.cluster_id for each in status.members]
    shown = f"{names[0]} ... {names[-1]}" if len(names) > 2 else ", ".join(names)
    return Facts(
        [
            ("fleet", fleet.metadata.name),
            ("ready", f"{status.ready_replicas} of {fleet.spec.replicas}"),
            *([("members", shown)] if names else []),
            *(
                (each.type.lower(), each.message)
                for each in status.conditions
                if each.status != "True"
            ),
        ]
    )


def _members(members: Sequence[Member]) -> Table:
    columns = [Column("MEMBER"), Column("PHASE"), Column("MESSAGE")]
    rows = [
        (each.cluster_id, Cell(each.phase, _PHASES.get(each.phase, Tone.WARN)), each.message)
        for each in members
    ]
    return Table(columns, rows, empty="no members")


_TONES = {"ADDED": Tone.GOOD, "MODIFIED": Tone.WARN, "DELETED": Tone.BAD}
_PHASES = {"Ready": Tone.GOOD, "Failed": Tone.BAD}


def _place(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
