"""What the schema of Fleets cannot say: which of their fields have to agree."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.model.request_info import ROOT
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause
from kvestigate.kube.fieldpaths import Path

_SPEC = Path("spec")
_WIDTH = 4
"""Digits that follow a prefix."""


def check_fleet(write: Write) -> None:
    if write.operation == "DELETE" or write.info.subresource == "status":
        return
    name = write.new["metadata"].get("name", "")
    spec = write.new.get("spec")
    found = _problems(name, spec)
    if write.operation == "CREATE":  # Fleets that have a useless one must not get stuck
        found += _check_seed(spec)
    if found:
        resource = write.kind.resource
        raise causes.reject(resource.kind, resource.group, name, found)


def _problems(fleet: str, spec: Any) -> list[Cause]:
    if not isinstance(spec, dict):
        return []
    listed, replicas = spec.get("names") or [], spec.get("replicas", 1)
    found = _check_names(listed, replicas) if listed else _check_prefix(fleet, spec)
    template = spec.get("template") or {}
    if template.get("fromPlane") and template.get("fromSnapshot"):
        path = _SPEC.child("template", "fromSnapshot")
        found.append(causes.forbidden(path, "may not be given together with fromPlane"))
    if template.get("clock") and (template.get("fromPlane") or template.get("fromSnapshot")):
        path = _SPEC.child("template", "clock")
        found.append(causes.forbidden(path, "members have the clock of the plane they stem from"))
    return found


def _check_seed(spec: Any) -> list[Cause]:
    template = (spec.get("template") if isinstance(spec, dict) else None) or {}
    if not template.get("seed") or template.get("clock") == "virtual":
        return []
    path = _SPEC.child("template", "seed")
    return [causes.forbidden(path, "only members with clock: virtual can have one")]


def _check_names(listed: list[str], replicas: int) -> list[Cause]:
    path = _SPEC.child("names")
    found: list[Cause] = []
    if len(listed) != replicas:
        told = f"must have as many items as there are replicas ({replicas})"
        found.append(causes.invalid(path, len(listed), told))
    seen: set[str] = set()
    for index, name in enumerate(listed):
        if name in seen:
            found.append(causes.duplicate(path.index(index), name))
        if name == ROOT:
            told = "the root plane cannot be a member"
            found.append(causes.invalid(path.index(index), name, told))
        seen.add(name)
    return found


def _check_prefix(fleet: str, spec: dict[str, Any]) -> list[Cause]:
    """The prefix is the Fleet's name unless another is given, and names may have dots."""
    prefix = spec.get("namePrefix") or f"{fleet}-"
    path = _SPEC.child("namePrefix")
    return [
        causes.invalid(path, prefix, f"cannot begin the id of a plane: {problem}")
        for problem in names.label_problems(prefix + "0" * _WIDTH)
    ]
