"""What an admission rule is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import msgspec

from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.store.model import Mutation
from kvestigate.errors import Forbidden


class SubresourceObject(NamedTuple):
    """The object of a subresource that stands for the stored one.

    A Scale stands for a Deployment, PodExecOptions for the pod of a stream.
    """

    kind: Kind
    show: Callable[[Object], Object]
    """The object of the subresource, made from the stored object."""
    take: Callable[[Object, Object], None]
    """Write the changes of the subresource's object back to the stored object."""


class Write(msgspec.Struct):
    """A write that has been defaulted and is about to be validated and stored."""

    operation: str
    """CREATE, UPDATE, DELETE or CONNECT"""
    kind: Kind
    new: Object
    """Rules may change it; on DELETE it is the object as stored."""
    old: Object | None
    info: RequestInfo
    scene: Scene
    warnings: list[str]
    served: Kind
    """The kind at the version that the client speaks."""
    creates: bool
    """Whether this makes a new object; a subresource never does."""
    dry_run: bool = False
    shown_as: SubresourceObject | None = None
    """What clients and webhooks see instead of the object, for some subresources."""
    notes: dict[str, str] = msgspec.field(default_factory=dict)
    """For the audit log."""
    extra: list[Mutation] = msgspec.field(default_factory=list)
    """Mutations to commit together with the write: a quota's new usage."""

    def forbidden(self, why: str) -> Forbidden:
        """The 403 that refuses the write, with a reason."""
        resource, name = self.kind.resource, self.new["metadata"].get("name", "")
        details = {"name": name, "group": resource.group, "kind": resource.plural}
        if not resource.group:
            del details["group"]
        return Forbidden(f'{resource.qualified} "{name}" is forbidden: {why}', details=details)


Rule: TypeAlias = Callable[[Write], None]
"""Changes the object, raises to refuse it, or does nothing."""
