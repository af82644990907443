"""Definitions of custom resources: accepted as they are written, gone with all their objects.

What kube-apiserver leaves to controllers happens within the write here: a definition's names
are accepted and its resource is served at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain

import msgspec

from kvestigate.cluster.plane.kinds.checks import immutable
from kvestigate.cluster.plane.kinds.custom import definition_rules, structural
from kvestigate.cluster.plane.kinds.custom.kind import CLEANUP, DEFINITIONS
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.cluster.plane.store.model import HOLE, Item, Mutation, Put, Remove
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.kube.causes import Causes

_NAMES = (
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("shortNames", "ShortNamesConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
)
_KINDS = ("kind", "listKind")


class DefinitionKind(Kind):
    takes_long = True
    has_plain_finalizers = True
    status_carries_metadata = True
    counts_generations = True
    updates_unconditionally = False
    returns_deleted = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        names = spec.setdefault("names", {})
        if kind := names.get("kind"):
            names["singular"] = names.get("singular") or kind.lower()
            names["listKind"] = names.get("listKind") or f"{kind}List"
        conversion = spec.setdefault("conversion", {})
        conversion.setdefault("strategy", "None")
        if "webhook" in conversion and not any((conversion["webhook"] or {}).values()):
            del conversion["webhook"]
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)

    def on_create(self, obj: Object, scene: Scene) -> None:
        obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}
        obj["status"]["storedVersions"] = _storage(obj)[:1] or None
        _accept(obj, scene)

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        if scene.subresource:
            return
        status = new["status"] = dict(new.get("status") or {})
        stored = status.get("storedVersions") or []
        added = (name for name in _storage(new)[:1] if name not in stored)
        status["storedVersions"] = [*stored, *added]
        if "deletionTimestamp" not in old["metadata"]:
            _accept(new, scene)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return [*definition_rules.check_name(obj), *definition_rules.check(obj)]

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        return [*definition_rules.check(new), *self.validate_update(new, old, scene)]

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        specs = new["spec"], old["spec"]
        names = new["spec"]["names"], old["spec"]["names"]
        if _is_established(old):
            yield from immutable("spec", *specs, "scope")
            yield from immutable("spec.names", *names, "kind")
        yield from immutable("spec", *specs, "group")
        yield from immutable("spec.names", *names, "plural")

    def warnings(self, obj: Object) -> list[str]:
        schemas = [*definition_rules.schemas(obj["spec"])]
        return [
            f'unrecognized format "{form}"'
            for form in dict.fromkeys(chain(*map(structural.odd_formats, schemas)))
        ]

    # -- deleting ------------------------------------------------------------------------

    def finalizers_on_delete(self, obj: Object, scene: Scene) -> list[str]:
        return [CLEANUP] if any(map(_is_held, _objects(obj, scene.state))) else []

    def removed_with(self, obj: Object, scene: Scene) -> list[Mutation]:
        key = _key(obj)
        time = obj["metadata"].get("deletionTimestamp", "")
        return [
            _doomed(item, key, time)
            if _is_held(item)
            else Remove(key, item.namespace, item.name, item.revision)
            for item in _objects(obj, scene.state)
        ]

    def on_delete(self, obj: Object, scene: Scene) -> None:
        obj["metadata"].pop("deletionGracePeriodSeconds", None)
        message = "CustomResource deletion is in progress"
        ending = ("Terminating", "True", "InstanceDeletionInProgress", message)
        _condition(obj["status"], ending, scene.now)


def _key(obj: Object) -> tuple[str, str]:
    return (obj["spec"]["group"], obj["spec"]["names"]["plural"])


def _objects(obj: Object, state: PlaneState) -> Iterator[Item]:
    """The objects of what a definition defines; none of another's that has the same names."""
    return state.collection(_key(obj)).items() if _is_established(obj) else iter(())


def _is_held(item: Item) -> bool:
    return b'"finalizers"' in item.data and bool(
        msgspec.json.decode(item.data)["metadata"].get("finalizers")
    )


def _doomed(item: Item, key: tuple[str, str], time: str) -> Put:
    """A copy of the object that is marked for deletion, because finalizers keep it."""
    obj = msgspec.json.decode(item.data)
    ending = {"deletionTimestamp": time, "deletionGracePeriodSeconds": 0}
    obj["metadata"] = {**ending, **obj["metadata"], "resourceVersion": HOLE}
    body = msgspec.json.encode(obj)
    where = (key, item.namespace, item.name, item.uid)
    return Put(*where, body, item.revision, item.labels, item.owners, item.fields)


def _storage(obj: Object) -> list[str]:
    versions = obj["spec"].get("versions") or ()
    return [version["name"] for version in versions if version.get("storage")]


# -- names ------------------------------------------------------------------------------


def _accept(obj: Object, scene: Scene) -> None:
    """Take the names that no other definition of the group has, and serve it if all are free."""
    status, wanted = obj["status"], obj["spec"]["names"]
    taken = _taken(obj, scene.state)
    accepted = dict(status.get("acceptedNames") or {})
    conflict = ("NamesAccepted", "True", "NoConflicts", "no conflicts found")
    for field, reason in _NAMES:
        value = wanted.get(field)
        clash = _clash(field, value, taken)
        if clash:
            message = f'"{clash}" is already in use'
            conflict = ("NamesAccepted", "False", reason, message)
        elif value:
            accepted[field] = value
        else:
            accepted.pop(field, None)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    status["acceptedNames"] = accepted
    _condition(status, conflict, scene.now)
    if conflict[1] == "True":
        reason, message = "InitialNamesAccepted", "the initial names have been accepted"
        _condition(status, ("Established", "True", reason, message), scene.now)
    elif not _is_established(obj):
        message = "not all names are accepted"
        _condition(status, ("Established", "False", "NotAccepted", message), scene.now)
    if definition_rules.is_protected(obj["spec"].get("group", "")):
        _condition(status, _approval(obj), scene.now)


def _approval(obj: Object) -> Condition:
    """What the annotation of a protected group says; the rules see to it that there is one."""
    approval = (obj["metadata"].get("annotations") or {}).get(definition_rules.APPROVAL, "")
    conformant = "KubernetesAPIApprovalPolicyConformant"
    if approval.startswith("unapproved"):
        return (conformant, "False", "UnapprovedAnnotation", f'not approved: "{approval}"')
    return (conformant, "True", "ApprovedAnnotation", f"approved in {approval}")


Condition = tuple[str, str, str, str]
"""type, status, reason, message"""


class _Group(msgspec.Struct):
    group: str


class _Accepted(msgspec.Struct, rename="camel"):
    accepted_names: Object | None = None


class _Named(msgspec.Struct):
    """The names in a definition, decoded without its schemas, which may be megabytes."""

    spec: _Group
    status: _Accepted | None = None


_named = msgspec.json.Decoder(_Named)


def _taken(obj: Object, state: PlaneState) -> dict[str, set[str]]:
    """The names of the group's other definitions: of resources, and of kinds."""
    taken: dict[str, set[str]] = {"resources": set(), "kinds": set()}
    group, name = obj["spec"].get("group"), obj["metadata"].get("name")
    for item in state.collection(DEFINITIONS).items():
        if item.name == name or not item.name.endswith(f".{group}"):
            continue
        other = _named.decode(item.data)
        if other.spec.group != group:
            continue
        names = {} if other.status is None else other.status.accepted_names or {}
        taken["kinds"] |= {names.get(field, "") for field in _KINDS}
        taken["resources"] |= {names.get("plural", ""), names.get("singular", "")}
        taken["resources"] |= set(names.get("shortNames") or ())
    return taken


def _clash(field: str, value: Sequence[str] | str | None, taken: dict[str, set[str]]) -> str:
    among = taken["kinds" if field in _KINDS else "resources"]
    wanted = [value] if isinstance(value, str) else value or []
    return next((each for each in wanted if each and each in among), "")


def _is_established(obj: Object) -> bool:
    return any(
        each.get("type") == "Established" and each.get("status") == "True"
        for each in (obj.get("status") or {}).get("conditions") or ()
    )


def _condition(status: Object, wanted: Condition, now: float) -> None:
    """Set a condition. Its time changes only if its status does."""
    type_, value, reason, message = wanted
    conditions = list(status.get("conditions") or ())
    position = next(
        (at for at, condition in enumerate(conditions) if condition["type"] == type_), None
    )
    since = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if position is not None and conditions[position]["status"] == value:
        return
    made = {
        "type": type_,
        "status": value,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
    if position is None:
        conditions.append(made)
    else:
        conditions[position] = made
    status["conditions"] = conditions
