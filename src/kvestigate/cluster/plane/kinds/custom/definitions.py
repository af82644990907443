"""From stored definitions to the kinds they define, compiled once for all planes. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from kvestigate.cluster.plane.kinds.custom.kind import CustomKind
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.model import Item
from kvestigate.kube.resources import Resource

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")

Kinds = tuple[CustomKind, ...]

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def kinds_of(item: Item) -> Kinds:
    """The served versions of what a stored definition defines; none until it is established."""
    return _read(item.data)


@lru_cache(maxsize=4096)
def _read(data: bytes) -> Kinds:
    definition: Object = msgspec.json.decode(data)
    status = definition.get("status") or {}
    if not _is_true(status, "Established"):
        return ()
    meta = definition["metadata"]
    described = {
        "spec": definition["spec"],
        "names": status["acceptedNames"],
        "changed": meta.get("generation", 1) > 1,
        "ending": "deletionTimestamp" in meta,
    }
    return _compiled(msgspec.json.encode(described))


def _is_true(status: Object, condition: str) -> bool:
    return any(
        each.get("type") == condition and each.get("status") == "True"
        for each in status.get("conditions") or ()
    )


@lru_cache(maxsize=4096)
def _compiled(described: bytes) -> Kinds:
    """Definitions that say the same share their kinds, whichever planes they are in."""
    value = msgspec.json.decode(described)
    spec, names = value["spec"], value["names"]
    made = {
        version["name"]: CustomKind(
            _resource(spec, names, version),
            version,
            changed=value["changed"] or len(spec["versions"]) > 1,
            ending=value["ending"],
        )
        for version in spec["versions"]
    }
    (stored,) = (made[version["name"]] for version in spec["versions"] if version["storage"])
    conversion = spec.get("conversion") or {}
    webhook = conversion["webhook"] if conversion.get("strategy") == "Webhook" else None
    versions = {kind.resource.api_version: kind for kind in made.values()}
    for kind in made.values():
        kind.join(versions, stored, webhook if len(made) > 1 else None)
    served = [version["name"] for version in spec["versions"] if version["served"]]
    return tuple(made[name] for name in sorted(served, key=priority))


def _resource(spec: Object, names: Object, version: Object) -> Resource:
    parts = version.get("subresources") or {}
    return Resource(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        spec["scope"] == "Namespaced",
        names.get("singular", ""),
        tuple(names.get("shortNames") or ()),
        tuple(names.get("categories") or ()),
        VERBS,
        tuple(part for part in ("status", "scale") if parts.get(part) is not None),
    )


_STAGES = {None: 0, "beta": 1, "alpha": 2}


def priority(version: str) -> tuple[object, ...]:
    """Sorts versions as discovery prefers them: v2, v1, v2beta1, v1alpha3, then the odd ones."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, version)
    return (0, _STAGES[match[2]], -int(match[1]), -int(match[3] or 0))
