"""A Fleet as the controller reads it, and the status it writes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kvestigate.cluster.plane.admission.rules.fleets import AUTHOR, Author
from kvestigate.cluster.plane.store.model import Item

GROUP, VERSION, PLURAL = "kplane.dev", "v1", "fleets"
FLEETS = (GROUP, PLURAL)
FINALIZER = "kplane.dev/members"
"""Holds a Fleet until its members are gone."""

PENDING, READY, FAILED = "Pending", "Ready", "Failed"


class Origin(Struct, frozen=True, rename={"cluster_id": "clusterID"}):
    """A state that some plane was in."""

    cluster_id: str
    checkpoint: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")


class Template(Struct, frozen=True, rename="camel"):
    """The objects that members start with, applied in this order."""

    from_plane: str = ""
    from_snapshot: Origin | None = None
    scenario: str = ""
    objects: tuple[dict[str, Any], ...] = ()
    clock: Literal["", "wall", "virtual"] = ""
    seed: int = 0


class Spec(Struct, frozen=True, rename={"name_prefix": "namePrefix", "ttl_seconds": "ttlSeconds"}):
    replicas: int = 1
    name_prefix: str = ""
    names: tuple[str, ...] = ()
    ttl_seconds: int | None = None
    """The Fleet goes this long after it was made, and its members with it."""
    member_ttl_seconds: int | None = msgspec.field(default=None, name="memberTTLSeconds")
    """A member is made anew this long after it became ready."""
    template: Template = Template()


class Member(Struct, frozen=True, omit_defaults=True, rename={"cluster_id": "clusterID"}, gc=False):
    cluster_id: str
    phase: str
    message: str = ""
    last_transition_time: str = msgspec.field(default="", name="lastTransitionTime")

    @property
    def owned(self) -> bool:
        """Whether a plane of that name, if there is one, is the Fleet's."""
        return self.phase != FAILED


class Condition(Struct, frozen=True, rename="camel"):
    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str
    observed_generation: int


class Status(Struct, frozen=True, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    members: tuple[Member, ...] = ()
    conditions: tuple[Condition, ...] = ()


class Metadata(Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    creation_timestamp: str
    resource_version: str
    generation: int = 1
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()
    annotations: dict[str, str] = {}


class Fleet(Struct, frozen=True):
    metadata: Metadata
    spec: Spec = Spec()
    status: Status = Status()

    @property
    def author(self) -> Author | None:
        """Who asked for the present spec; None if nobody was recorded."""
        recorded = self.metadata.annotations.get(AUTHOR)
        return None if recorded is None else msgspec.json.decode(recorded, type=Author)

    def names(self) -> list[str]:
        """Of the members it should have."""
        return member_names(
            self.metadata.name, self.spec.replicas, self.spec.name_prefix, self.spec.names
        )


def member_names(fleet: str, replicas: int, prefix: str, names: Sequence[str]) -> list[str]:
    if names:
        return list(names)
    return [f"{prefix or f'{fleet}-'}{index:04}" for index in range(replicas)]


_fleet = msgspec.json.Decoder(Fleet)


def read(item: Item) -> Fleet:
    return _fleet.decode(item.data)
