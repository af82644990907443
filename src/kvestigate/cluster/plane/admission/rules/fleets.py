"""Fleets: who asks for them, and what their schema cannot say.

A Fleet makes planes, and copies them, after the request for it is over. So whoever last changed its
spec is recorded in it (`AUTHOR`), and what it makes is decided for that person. Its status says
which planes it may delete: only its controller writes that.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.cluster.plane.access.authz import rbac
from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.model.kind import Scene
from kvestigate.cluster.plane.model.request_info import ROOT, RequestInfo
from kvestigate.cluster.plane.model.user import MASTERS, User
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause
from kvestigate.kube.fieldpaths import Path

_SPEC = Path("spec")
_WIDTH = 4
"""Digits that follow a prefix."""


AUTHOR = "kplane.dev/author"
"""The annotation with the `Author` of a Fleet."""
_CREATION = RequestInfo("POST", "/clusters", "post")


class Person(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    groups: tuple[str, ...] = ()

    @property
    def user(self) -> User:
        return User(self.name, self.groups)


class Author(msgspec.Struct, frozen=True, omit_defaults=True):
    user: Person
    owner: Person | None = None
    """Whose credentials were sent, if `user` was impersonated."""


def record_author(write: Write) -> None:
    """Note who changed the spec; nobody else's word counts for it."""
    if write.operation == "DELETE":
        return
    meta = write.new["metadata"]
    annotations = {**(meta.get("annotations") or {})}
    annotations.pop(AUTHOR, None)
    if (recorded := _recorded(write)) is not None:
        annotations[AUTHOR] = recorded
    if annotations or "annotations" in meta:
        meta["annotations"] = annotations


def _recorded(write: Write) -> str | None:
    """What the annotation has to be."""
    if write.old is not None and write.old.get("spec") == write.new.get("spec"):
        known: str | None = (write.old["metadata"].get("annotations") or {}).get(AUTHOR)
        return known
    return msgspec.json.encode(_author(write.scene)).decode()


def _author(scene: Scene) -> Author:
    user = Person(scene.user.name, scene.user.groups)
    if scene.owner is None or scene.owner is scene.user:
        return Author(user)
    return Author(user, Person(scene.owner.name, scene.owner.groups))


def check_fleet(write: Write) -> None:
    if write.operation == "DELETE":
        return
    if write.info.subresource == "status":
        if MASTERS not in write.scene.user.groups:
            raise write.forbidden("only its controller writes the status of a Fleet")
        return
    annotations = write.new["metadata"].get("annotations") or {}
    if annotations.get(AUTHOR) != _recorded(write):  # by a policy or webhook
        raise write.forbidden(f"nobody may change the annotation {AUTHOR}")
    if write.old is None or write.old.get("spec") != write.new.get("spec"):
        _check_creation(write)
    name = write.new["metadata"].get("name", "")
    spec = write.new.get("spec")
    problems = _problems(name, spec)
    if write.operation == "CREATE":  # Fleets that have a useless one must not get stuck
        problems += _check_seed(spec)
    if problems:
        resource = write.kind.resource
        raise causes.reject(resource.kind, resource.group, name, problems)


def _check_creation(write: Write) -> None:
    """A Fleet creates planes: its author needs the right to, in whatever way they come to be."""
    scene = write.scene
    for user in (scene.owner or scene.user, scene.user):
        if not rbac.allowed(scene.state, user, _CREATION):
            raise write.forbidden(
                f'User "{user.name}" cannot {_CREATION.verb} path "{_CREATION.path}", which is '
                "the right to create planes"
            )


def _problems(fleet: str, spec: Any) -> list[Cause]:
    if not isinstance(spec, dict):
        return []
    listed, replicas = spec.get("names") or [], spec.get("replicas", 1)
    problems = _check_names(listed, replicas) if listed else _check_prefix(fleet, spec)
    template = spec.get("template") or {}
    if template.get("fromPlane") and template.get("fromSnapshot"):
        path = _SPEC.child("template", "fromSnapshot")
        problems.append(causes.forbidden(path, "may not be given together with fromPlane"))
    if template.get("clock") and (template.get("fromPlane") or template.get("fromSnapshot")):
        path = _SPEC.child("template", "clock")
        problems.append(
            causes.forbidden(path, "members have the clock of the plane they stem from")
        )
    return problems


def _check_seed(spec: Any) -> list[Cause]:
    template = (spec.get("template") if isinstance(spec, dict) else None) or {}
    if not template.get("seed") or template.get("clock") == "virtual":
        return []
    path = _SPEC.child("template", "seed")
    return [causes.forbidden(path, "only members with clock: virtual can have one")]


def _check_names(listed: list[str], replicas: int) -> list[Cause]:
    path = _SPEC.child("names")
    problems: list[Cause] = []
    if len(listed) != replicas:
        rule = f"must have as many items as there are replicas ({replicas})"
        problems.append(causes.invalid(path, len(listed), rule))
    seen: set[str] = set()
    for index, name in enumerate(listed):
        if name in seen:
            problems.append(causes.duplicate(path.index(index), name))
        if name == ROOT:
            rule = "the root plane cannot be a member"
            problems.append(causes.invalid(path.index(index), name, rule))
        seen.add(name)
    return problems


def _check_prefix(fleet: str, spec: dict[str, Any]) -> list[Cause]:
    """The prefix is the Fleet's name unless another is given, and names may have dots."""
    prefix = spec.get("namePrefix") or f"{fleet}-"
    path = _SPEC.child("namePrefix")
    return [
        causes.invalid(path, prefix, f"cannot begin the id of a plane: {problem}")
        for problem in names.label_problems(prefix + "0" * _WIDTH)
    ]
