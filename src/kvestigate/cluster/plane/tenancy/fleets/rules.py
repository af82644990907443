"""The actions that a Fleet needs, and its status. Pure: the time is an argument."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import datetime

from kvestigate.cluster.plane.model.metadata import timestamp
from kvestigate.cluster.plane.tenancy.fleets.model import (
    FAILED,
    PENDING,
    READY,
    Condition,
    Fleet,
    Member,
    Status,
)


@dataclass(frozen=True, slots=True)
class Plan:
    keep: dict[str, Member]
    """Members that stay as they are."""
    make: list[str]
    remove: list[str]
    """Planes to delete first: surplus members, and members whose TTL has passed."""
    taken: list[str]
    """Names that others have."""


def plan(fleet: Fleet, planes: Container[str], now: float, *, resumed: bool) -> Plan:
    """`planes` are those that exist; `resumed` says that the server has just started."""
    known = {member.cluster_id: member for member in fleet.status.members}
    wanted = dict.fromkeys(fleet.names())
    remove = [
        name
        for name, member in known.items()
        if member.owned and name not in wanted and name in planes
    ]
    keep, make, taken = {}, [], []
    anew = fleet.metadata.generation != fleet.status.observed_generation or resumed
    for name in wanted:
        before = known.get(name)
        if before is not None and before.owned:
            if name not in planes:
                make.append(name)
            elif before.phase == PENDING:
                # Members come all at once and complete: the server ended before it said so.
                keep[name] = Member(name, READY, last_transition_time=timestamp(now))
            elif _expired(fleet, before, now):
                remove.append(name)
                make.append(name)
            else:
                keep[name] = before
        elif name in planes:
            taken.append(name)
        elif before is None or anew:
            make.append(name)
        else:
            keep[name] = before
    return Plan(keep, make, remove, taken)


def fleet_expiry(fleet: Fleet) -> float | None:
    ttl = fleet.spec.ttl_seconds
    return None if ttl is None else seconds(fleet.metadata.creation_timestamp) + ttl


def next_expiry(fleet: Fleet) -> float | None:
    """When there is something to do again, if nothing happens."""
    times = [fleet_expiry(fleet)]
    ttl = fleet.spec.member_ttl_seconds
    if ttl is not None:
        ready = [each for each in fleet.status.members if each.phase == READY]
        times += [seconds(each.last_transition_time) + ttl for each in ready]
    return min((time for time in times if time is not None), default=None)


def _expired(fleet: Fleet, member: Member, now: float) -> bool:
    ttl = fleet.spec.member_ttl_seconds
    return ttl is not None and seconds(member.last_transition_time) + ttl <= now


def status_of(fleet: Fleet, members: Iterable[Member], now: float) -> Status:
    """The status with these members, those that did not change as they were."""
    before = {member.cluster_id: member for member in fleet.status.members}
    by_name = {member.cluster_id: _settled(member, before, now) for member in members}
    ordered = tuple(by_name[name] for name in fleet.names() if name in by_name)
    ready = sum(member.phase == READY for member in ordered)
    return Status(
        fleet.metadata.generation,
        len(ordered),
        ready,
        ordered,
        (_condition(fleet, ordered, ready, now),),
    )


def _settled(member: Member, before: dict[str, Member], now: float) -> Member:
    old = before.get(member.cluster_id)
    if member.last_transition_time:
        return member
    same = old is not None and old.phase == member.phase and old.last_transition_time
    at = old.last_transition_time if old is not None and same else timestamp(now)
    return Member(member.cluster_id, member.phase, member.message, at)


def _condition(fleet: Fleet, members: tuple[Member, ...], ready: int, now: float) -> Condition:
    failed = [member for member in members if member.phase == FAILED]
    if failed:
        status, reason = "False", "MembersFailed"
        message = f"{len(failed)} of {fleet.spec.replicas} members failed: {failed[0].message}"
    elif ready == fleet.spec.replicas:
        status, reason, message = "True", "AllReady", f"all {ready} members are ready"
    else:
        status, reason = "False", "Pending"
        message = f"{ready} of {fleet.spec.replicas} members are ready"
    old = next((each for each in fleet.status.conditions if each.type == "Ready"), None)
    unchanged = old is not None and old.status == status
    at = old.last_transition_time if old is not None and unchanged else timestamp(now)
    return Condition("Ready", status, reason, message, at, fleet.metadata.generation)


def seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
