"""What the agents of a cyberspace hold, entry by entry, and how that changes. Pure.

An entry is written before anything happens on a host, and taken back after the last of it is gone:
so whatever there is, is counted, whoever was stopped in the middle.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec import structs

from kvestigate.cybernet import quotas
from kvestigate.cybernet.policy import check_owner
from kvestigate.cybernet.quotas import Holding, holder_of
from kvestigate.cybernet.refusals import RETRY_SECONDS, NoSuchThing, Unavailable
from kvestigate.cybernet.spec import QuotaSpec
from kvestigate.errors import KvestigateError

STALE = 15.0
"""Seconds after which nobody is believed to be at work on what nobody has said so about."""

Place = tuple[str, str]
"""Node and name."""


class Stage(enum.StrEnum):
    MAKING = "making"
    HELD = "held"
    REMOVING = "removing"


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A workspace, or an App in pods while it is being made."""

    node: str
    """Empty if it is in pods."""
    name: str
    owner: str
    gpus: int = 0
    memory: int = 0
    count: int = 1
    devices: tuple[int, ...] = ()
    """The GPUs that it has reserved, as the host counts them."""
    borrowed: tuple[int, ...] = ()
    """Those that its runs have besides."""
    borrowed_at: float = 0.0
    """When the last of these was borrowed: its run may not have been started yet."""
    stage: Stage = Stage.HELD
    renewed: float = 0.0
    """When its agent last asked about it, or whoever makes or removes it was last at work."""

    @property
    def place(self) -> Place:
        return self.node, self.name

    @property
    def holding(self) -> Holding:
        gpus = self.gpus + len(self.borrowed)
        return Holding(self.node, self.name, self.owner, gpus, self.memory, self.count)


Entries = Mapping[Place, Entry]


@dataclass(frozen=True, slots=True)
class Real:
    """A workspace of the cyberspace as it is on its host."""

    node: str
    name: str
    owner: str
    """As its marker says."""
    devices: tuple[int, ...] = ()
    borrowed: tuple[int, ...] = ()
    """GPUs that are not reserved, and that a run has now."""
    memory: int = 0
    """Bytes that its tmpfs may take, whether or not it is mounted now."""
    alive: int = 0
    """Runs."""

    @property
    def place(self) -> Place:
        return self.node, self.name


@dataclass(frozen=True, slots=True)
class Found:
    """What is in the cluster and on its hosts now."""

    workspaces: tuple[Real, ...] = ()
    apps: tuple[Holding, ...] = ()
    """Those in pods."""
    answered: frozenset[str] = frozenset()
    """Nodes that could be asked."""
    unreachable: Mapping[str, str] = field(default_factory=dict)
    """Why, of each node that could not."""
    uncounted: KvestigateError | None = None
    """Why the Apps in pods are not among them."""
    no_way: KvestigateError | None = None
    """Why not one host can be asked."""


def reserved(
    entries: Entries, wanted: Holding, limits: QuotaSpec, apps: Iterable[Holding], now: float
) -> dict[Place, Entry]:
    """With a place for `wanted`, where there is one; the larger counts of what is there and that.

    QuotaExceeded if there is none; NotAllowed if somebody else has a workspace there.
    """
    there = entries.get(wanted.place)
    entry = Entry(
        node=wanted.node,
        name=wanted.name,
        owner=wanted.owner,
        gpus=wanted.gpus,
        memory=wanted.memory,
        count=wanted.count,
        stage=Stage.MAKING,
        renewed=now,
    )
    if there is not None:
        check_owner(there.owner, wanted.owner, wanted.name)
        check_settled(there, now)
        entry = structs.replace(
            entry,
            gpus=max(there.gpus, wanted.gpus),
            memory=max(there.memory, wanted.memory),
            count=max(there.count, wanted.count),
            devices=there.devices,
            borrowed=there.borrowed,
        )
    others = [it.holding for it in entries.values() if it.place != wanted.place]
    quotas.check(limits, [*others, *apps], entry.holding)
    return {**entries, wanted.place: entry}


def check_settled(entry: Entry, now: float) -> None:
    """Unavailable while another request makes or removes it."""
    if entry.stage is not Stage.HELD and now - entry.renewed < STALE:
        doing = "made" if entry.stage is Stage.MAKING else "removed"
        refusal = Unavailable(
            f"workspace {entry.name!r} is being {doing} by another request",
            "ledger",
            hint="try again",
        )
        refusal.retry_after = RETRY_SECONDS
        raise refusal


def borrowing(
    entries: Entries,
    place: Place,
    gpus: Iterable[int],
    limits: QuotaSpec,
    apps: Iterable[Holding],
    now: float,
) -> dict[Place, Entry]:
    """With these GPUs for a run of the workspace there, which has reserved none."""
    entry = entries.get(place)
    if entry is None:
        raise NoSuchThing(f"there is no workspace {place[1]!r} on node {place[0]!r}", "ownership")
    borrowed = tuple(sorted({*entry.borrowed, *gpus}))
    entry = structs.replace(entry, borrowed=borrowed, borrowed_at=now)
    others = [it.holding for it in entries.values() if it.place != place]
    quotas.check(limits, [*others, *apps], entry.holding)
    return {**entries, place: entry}


def changed(entries: Entries, place: Place, entry: Entry | None) -> dict[Place, Entry]:
    """With this entry there, or with none."""
    rest = {it: found for it, found in entries.items() if it != place}
    return rest if entry is None else {**rest, place: entry}


@dataclass(frozen=True, slots=True)
class Reconciled:
    entries: dict[Place, Entry]
    repairs: tuple[str, ...]
    """What was not as it was written down, a sentence each."""


def reconciled(entries: Entries, found: Found, now: float) -> Reconciled:
    """The entries as the hosts say that they are to be.

    What somebody is at work on is left alone, and so is what is on nodes that do not answer.
    """
    result, repairs = dict(entries), []
    there = {real.place: real for real in found.workspaces}
    for place, entry in entries.items():
        if entry.stage is not Stage.HELD and now - entry.renewed < STALE:
            continue
        if entry.node and entry.node not in found.answered:
            continue
        as_found = as_it_is(entry, there.get(place), now)
        if as_found is None:
            del result[place]
            repairs.append(f"{_named(place)} was counted and is not there: it counts no longer")
        else:
            result[place] = as_found
            if entry.stage is not Stage.HELD:
                repairs.append(f"{_named(place)} was found while {entry.stage.value}: it is held")
    for place, real in there.items():
        if place not in result:
            fresh = Entry(node=real.node, name=real.name, owner=holder_of(real.owner))
            if (adopted := as_it_is(fresh, real, now)) is not None:
                result[place] = structs.replace(adopted, renewed=now)
                repairs.append(f"{_named(place)} was there and not counted: it counts now")
    return Reconciled(result, tuple(repairs))


def abandoned(entries: Entries, found: Found, ttl: float, now: float) -> list[Entry]:
    """Workspaces that nobody has asked about for so long, and in which nothing runs.

    Those of Apps are not for agents to ask about.
    """
    idle = {real.place: real.owner for real in found.workspaces if not real.alive}
    return [
        entry
        for place, entry in entries.items()
        if entry.stage is Stage.HELD
        and idle.get(place) == entry.owner
        and now - entry.renewed > ttl
    ]


def as_it_is(entry: Entry, real: Real | None, now: float) -> Entry | None:
    """The entry as its host has it; None if that has no such workspace of this owner.

    GPUs that were borrowed just now count although no run has them yet.
    """
    if real is None or holder_of(real.owner) != entry.owner:
        return None
    just_now = entry.borrowed if now - entry.borrowed_at < STALE else ()
    return structs.replace(
        entry,
        stage=Stage.HELD,
        gpus=len(real.devices),
        memory=real.memory,
        devices=real.devices,
        borrowed=tuple(sorted({*real.borrowed, *just_now} - {*real.devices})),
    )


def _named(place: Place) -> str:
    node, name = place
    return f"workspace {name!r} on node {node!r}" if node else f"App {name!r}"
