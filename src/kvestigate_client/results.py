"""What a server of planes answers, as values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything in a plane at one revision."""

    cluster: str
    time: str
    resource_version: str
    resources: Mapping[tuple[str, str], Sequence[Object]]
    """By (group, resource)."""
    omitted: Sequence[tuple[str, str]] = ()
    """What the user may not see."""

    @classmethod
    def read(cls, value: Any) -> Snapshot:
        return cls(
            value["cluster"],
            value["snapshotTime"],
            value["resourceVersion"],
            {(each["group"], each["resource"]): each["items"] for each in value["resources"]},
            [(each["group"], each["resource"]) for each in value.get("omitted", ())],
        )

    def items(self, resource: str, namespace: str | None = None) -> list[Object]:
        """Of `pods` or `deployments.apps`; of one namespace or all."""
        plural, _, group = resource.partition(".")
        return [
            item
            for (of, name), items in self.resources.items()
            if name == plural and group in ("", of)
            for item in items
            if namespace in (None, item["metadata"].get("namespace"))
        ]

    def find(self, resource: str, name: str, namespace: str | None = None) -> Object | None:
        for item in self.items(resource, namespace):
            if item["metadata"]["name"] == name:
                return item
        return None

    def __iter__(self) -> Iterator[Object]:
        for items in self.resources.values():
            yield from items

    def digest(self) -> str:
        """Of the contents: equal when all objects are, whatever their revisions."""
        hashed = hashlib.sha256()
        for key in sorted(self.resources):
            hashed.update(repr(key).encode())
            for item in self.resources[key]:
                hashed.update(json.dumps(without_revisions(item), sort_keys=True).encode())
        return hashed.hexdigest()


def without_revisions(obj: Object) -> Object:
    """What an object says, but not when: revisions also count what was undone since."""
    parts = {key: obj[key] for key in ("metadata", "involvedObject") if key in obj}
    return obj | {
        key: {name: value for name, value in part.items() if name != "resourceVersion"}
        for key, part in parts.items()
    }


@dataclass(frozen=True, slots=True)
class FieldChange:
    path: str
    """`spec.replicas`"""
    before: Any = None
    after: Any = None


@dataclass(frozen=True, slots=True)
class ObjectChange:
    type: str
    """ADDED, MODIFIED or DELETED"""
    group: str
    resource: str
    namespace: str
    name: str
    object: Object | None = None
    """All of it, when it came or went."""
    fields: Sequence[FieldChange] = ()
    """What differs, when it changed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two states."""

    changes: Sequence[ObjectChange]

    @classmethod
    def read(cls, value: Any) -> Difference:
        return cls([_change(each) for each in value["changes"]])

    def __bool__(self) -> bool:
        return bool(self.changes)

    def of(self, type: str) -> list[ObjectChange]:
        """Those that are ADDED, MODIFIED or DELETED."""
        return [change for change in self.changes if change.type == type]


def _change(value: Any) -> ObjectChange:
    fields = [
        FieldChange(each["path"], each.get("from"), each.get("to"))
        for each in value.get("fields", ())
    ]
    return ObjectChange(
        value["type"],
        value["group"],
        value["resource"],
        value["namespace"],
        value["name"],
        value.get("object"),
        fields,
    )


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a plane."""

    revision: int
    type: str
    actor: str
    time: str
    group: str
    resource: str
    namespace: str
    name: str
    object: Object | None = None

    @classmethod
    def read(cls, value: Any) -> Event:
        return cls(**value)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    name: str
    resource_version: str

    @classmethod
    def read(cls, value: Any) -> Checkpoint:
        return cls(value["name"], value["resourceVersion"])


@dataclass(frozen=True, slots=True)
class Stepped:
    """What came of a step."""

    time: str
    """The plane's own, after it."""
    resource_version: str
    changes: int
    idle: bool
    """Whether there is nothing left to do."""

    @classmethod
    def read(cls, value: Any) -> Stepped:
        return cls(value["time"], value["resourceVersion"], value["changes"], value["idle"])


@dataclass(frozen=True, slots=True)
class Member:
    cluster_id: str
    phase: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class FleetStatus:
    replicas: int
    """How many are wanted."""
    ready: int
    members: Sequence[Member]
    settled: bool
    """Whether what was last asked for has been done, or has failed."""

    @classmethod
    def read(cls, fleet: Any) -> FleetStatus:
        status = fleet.get("status") or {}
        members = [
            Member(each["clusterID"], each["phase"], each.get("message", ""))
            for each in status.get("members", ())
        ]
        wanted = fleet["spec"].get("replicas", 1)
        settled = (
            status.get("observedGeneration") == fleet["metadata"]["generation"]
            and len(members) == wanted
            and all(member.phase != "Pending" for member in members)
        )
        return cls(wanted, status.get("readyReplicas", 0), members, settled)

    @property
    def failed(self) -> list[Member]:
        return [member for member in self.members if member.phase == "Failed"]
