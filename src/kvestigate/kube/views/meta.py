"""What all objects share: metadata, owners, conditions and label selectors."""

from __future__ import annotations

from datetime import datetime

import msgspec


# JSON is a tree, so no view can be part of a cycle: the collector need not know them.
class View(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The base of all views."""


class CondensedOwnerReference(View, frozen=True):
    kind: str = ""
    name: str = ""
    controller: bool = False


class OwnerReference(CondensedOwnerReference, frozen=True):
    api_version: str = ""
    uid: str = ""
    block_owner_deletion: bool = False
    """A foreground deletion of the owner waits for this object."""


class CondensedMetadata(View, frozen=True):
    """The metadata that is kept of objects which a cluster has very many of."""

    name: str = ""
    namespace: str = ""
    """Empty for what is not in a namespace."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    """Set once deletion was asked for."""
    owner_references: tuple[CondensedOwnerReference, ...] = ()


class Metadata(CondensedMetadata, frozen=True):
    generate_name: str = ""
    """The beginning of the name, to which the server adds the rest."""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_grace_period_seconds: int | None = None
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(View, frozen=True):
    type: str = ""
    status: str = ""
    """`True`, `False` or `Unknown`."""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class LabelSelectorRequirement(View, frozen=True):
    key: str = ""
    operator: str = ""
    """`In`, `NotIn`, `Exists` or `DoesNotExist`."""
    values: tuple[str, ...] = ()


class LabelSelector(View, frozen=True):
    """Everything in it must hold: an empty one selects all, an absent one nothing."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ObjectReference(View, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class PartialObject(View, frozen=True):
    """Any object, seen by its identity alone."""

    api_version: str = ""
    kind: str = ""
    metadata: Metadata = Metadata()
