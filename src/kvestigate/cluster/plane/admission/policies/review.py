"""A write as policies and webhooks get to see it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.admission.policies import replacing
from kvestigate.cluster.plane.admission.rules.namespaces import NAMESPACES
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.model.user import User
from kvestigate.errors import InternalError

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


@dataclass(frozen=True, slots=True)
class Address:
    """A resource at a version, maybe a part of it."""

    group: str
    version: str
    resource: str
    subresource: str = ""


class Review:
    """What there is to know of one write, each thing worked out when it is first asked for.

    `early` is for those who may change the write: a new object has no uid yet, for them.
    """

    def __init__(self, write: Write, *, early: bool = False) -> None:
        self.write = write
        self._early = early
        info = write.info
        self.address = Address(info.group, info.version, info.resource, info.subresource)
        self._shown: dict[Kind, tuple[Object | None, Object | None]] = {}

    @property
    def name(self) -> str:
        """The object's name; empty if the server generates it, or for a whole collection."""
        if self.write.info.verb == "deletecollection":
            return ""
        meta = self.write.new["metadata"]
        return self.write.info.name or ("" if meta.get("generateName") else meta.get("name", ""))

    @property
    def shown_name(self) -> str:
        """How refusals name the object."""
        if self.write.operation == "DELETE":
            return self.name or "Unknown"
        return self.name or str(self.write.new["metadata"].get("name", ""))

    @property
    def namespace(self) -> str:
        """The namespace; a Namespace counts as being in itself."""
        return self.name if self.write.kind.key == NAMESPACES else self.write.info.namespace

    def objects(self) -> Iterator[Object]:
        """The new and the old object in their stored form; None where there is none."""
        write = self.write
        if write.operation != "DELETE":
            yield write.new
        if write.old is not None:
            yield write.old

    @cached_property
    def equivalents(self) -> list[tuple[Address, Kind]]:
        """Other ways to address the same object: its resource at other versions."""
        served, part = self.write.served, self.address.subresource
        return [
            (
                Address(type_.resource.group, type_.resource.version, type_.resource.plural, part),
                type_,
            )
            for type_ in types.of(self.write.scene.state)
            if type_.storage is served.storage and type_ is not served
        ]

    def shown(self, kind: Kind) -> tuple[Object | None, Object | None]:
        """The new and the old object at the version of a kind; none where there is none."""
        if kind not in self._shown:
            write = self.write
            new = None if write.operation == "DELETE" else self._at(kind, write.new)
            self.offer(kind, new, None if write.old is None else self._at(kind, write.old))
        return self._shown[kind]

    def offer(self, kind: Kind, new: Object | None, old: Object | None) -> None:
        """Show these objects at the version of a kind."""
        if new is not None and self._early:
            new = replacing.early(self.write, new)
        self._shown[kind] = new, old

    def _at(self, kind: Kind, obj: Object) -> Object:
        if self.write.shown_as is not None:
            return self.write.shown_as.show(obj)
        resource = kind.resource
        if kind.conversion is not None and kind is not self.write.served:
            raise InternalError(
                f"{resource.plural}.{resource.group} is converted by a webhook: a policy must "
                f"match the version {self.write.served.resource.version} itself"
            )
        head = {"kind": resource.kind, "apiVersion": resource.api_version}
        return {**kind.from_stored(dict(obj)), **head}

    def request(self, address: Address, kind: Kind) -> dict[str, Any]:
        """The AdmissionRequest without its objects, for a webhook that matched this address."""
        write = self.write
        request: dict[str, Any] = {
            "kind": self._kind(kind),
            "resource": _resource(address),
            "requestKind": self._kind(write.served),
            "requestResource": _resource(self.address),
            "operation": write.operation,
            "userInfo": user_info(write.scene.user),
            "dryRun": write.dry_run,
            "options": self._options(),
        }
        if address.subresource:
            request["subResource"] = request["requestSubResource"] = address.subresource
        if self.name:
            request["name"] = self.name
        if self.namespace:
            request["namespace"] = self.namespace
        return request

    def _kind(self, kind: Kind) -> dict[str, str]:
        resource = (
            kind.resource if self.write.shown_as is None else self.write.shown_as.kind.resource
        )
        return {"group": resource.group, "version": resource.version, "kind": resource.kind}

    def _options(self) -> dict[str, Any] | None:
        params, name = self.write.info.params, _OPTIONS.get(self.write.operation)
        if name is None:
            return None  # streams have none
        options: dict[str, Any] = {"kind": name, "apiVersion": "meta.k8s.io/v1"}
        if self.write.dry_run:
            options["dryRun"] = ["All"]
        for key in ("fieldManager", "fieldValidation", "propagationPolicy"):
            if params.get(key):
                options[key] = params[key]
        return options


def _resource(address: Address) -> dict[str, str]:
    return {
        "group": address.group,
        "version": address.version,
        "resource": address.resource,
    }


def user_info(user: User) -> dict[str, Any]:
    """A user as the `userInfo` of an AdmissionReview."""
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
