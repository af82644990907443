"""A kind that a definition in the plane describes, at one of its versions. Pure.

Without a conversion webhook, versions differ in their schema and their apiVersion only, so objects
are kept as they were written, and shaped when they are read: by the schema of the stored version,
and another version then leaves out what it does not know. The same goes once a definition was
changed: what is stored may be older than its defaults, and kube-apiserver too fills them in on
reading. With a webhook, every version stands for itself, and `verbs.converting` asks the webhook
where objects enter or leave the store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any

import msgspec

from kvestigate.cluster.plane.kinds.custom import jsonpath, rules, validation
from kvestigate.cluster.plane.kinds.custom.structure import OBJECT_META, Structure
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.cluster.plane.store.model import Mutation, Remove
from kvestigate.errors import MethodNotAllowed
from kvestigate.kube import causes, facts, normal, schema
from kvestigate.kube.causes import Cause, Causes
from kvestigate.kube.resources import Resource
from kvestigate.kube.schema import Problems

DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")
"""Where the definitions are kept."""

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of definitions that wait for their objects to go."""

_BLOCKING = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_MAX_REPLICAS = 2**31 - 1
_STEP = re.compile(r"[^.\[\]]+")


class CustomKind(Kind):
    counts_generations = True
    updates_unconditionally = False
    trims_list_items = False
    says_continue = True
    indexes_fields = False

    def __init__(self, resource: Resource, version: Object, *, changed: bool, ending: bool) -> None:
        self.is_prepared = False
        self.selectable = tuple(_selectable(version))
        super().__init__(resource)
        self.schema = (version.get("schema") or {}).get("openAPIV3Schema") or _OPEN
        self.columns: list[Object] = version.get("additionalPrinterColumns") or []
        self.scale: Object = (version.get("subresources") or {}).get("scale") or {}
        """Where the replicas are, as the definition says it."""
        self._changed = changed
        """Whether what is stored may not be as the schema has it."""
        self._ending = ending
        self.versions: Mapping[str, CustomKind] = {}
        """All versions of the resource by their apiVersion, also those that are not served."""
        self._storage: CustomKind = self
        if version.get("deprecated"):
            usual = f"{resource.api_version} {resource.kind} is deprecated"
            self.deprecation = version.get("deprecationWarning") or usual

    def join(
        self, versions: Mapping[str, CustomKind], storage: CustomKind, webhook: Object | None
    ) -> None:
        """Make it one of the versions of a resource."""
        self.versions, self._storage, self.conversion = versions, storage, webhook
        if webhook is None:
            self.stored = storage

    @property
    def storage(self) -> CustomKind:
        return self._storage

    @cached_property
    def takes_long(self) -> bool:  # type: ignore[override] # a fact of the definition
        """Whether the schema has rules or patterns."""
        text = msgspec.json.encode(self.schema)
        return b'"x-kubernetes-validations"' in text or b'"pattern"' in text

    def prepare(self) -> None:
        """Compile all that the first object of the kind needs."""
        self.structure  # noqa: B018 - cached from now on
        self._check  # noqa: B018
        self._rules  # noqa: B018
        self._known  # noqa: B018
        self.is_prepared = True

    # Compiling a large schema takes a while: whoever writes the first object waits for it, not
    # everybody in the plane.

    @cached_property
    def structure(self) -> Structure:
        return Structure(self.schema or _OPEN, root=True)

    @cached_property
    def _check(self) -> validation.Check:
        return validation.compiled(self.schema or _OPEN)

    @cached_property
    def _rules(self) -> rules.Node | None:
        return rules.compile_rules(self.schema or _OPEN)

    @cached_property
    def _known(self) -> Structure:
        """The fields of an object that this version's schema knows."""
        return Structure(self.schema or _OPEN, root=True, defaults=False)

    @property
    def shown_as_stored(self) -> bool:
        return self.stored is self and not self._changed

    @property
    def judge(self) -> Kind:
        return self

    # -- shape ---------------------------------------------------------------------------

    def problems(self, obj: Object) -> Problems:
        meta = schema.problems(obj["metadata"], facts.definition(OBJECT_META))
        unknown = tuple(self.structure.unknown(obj))
        mistyped = meta.mistyped or self.structure.mistyped(obj)
        if not mistyped and not meta and not unknown:
            return schema.FITS
        named = tuple(f"metadata.{path}" for path in meta.unknown)
        return Problems(mistyped, named + unknown)

    def normalised(self, obj: Object) -> Object:
        meta = normal.normalised(obj["metadata"], facts.definition(OBJECT_META))
        shaped: Object = self.structure.shaped({**obj, "metadata": meta})
        return shaped

    def to_stored(self, obj: Object) -> Object:
        if self.stored is self:
            return obj
        return {**obj, "apiVersion": self.stored.resource.api_version}

    def from_stored(self, obj: Object) -> Object:
        if self.shown_as_stored:
            return obj
        assert isinstance(self.stored, CustomKind)
        shown: Object = self.stored.structure.shaped(obj)
        if self.stored is self:
            return shown
        return {**self._known.shaped(shown), "apiVersion": self.resource.api_version}

    def is_new_generation(self, new: Object, old: Object) -> bool:
        return super().is_new_generation(new, old) or (
            not self.has_status and new.get("status") != old.get("status")
        )

    def on_create(self, obj: Object, scene: Scene) -> None:
        if self._ending:
            raise MethodNotAllowed(
                "create not allowed while custom resource definition is terminating",
                details={"group": self.resource.group, "kind": self.resource.plural},
            )

    # -- rules ---------------------------------------------------------------------------

    def validate(self, obj: Object, scene: Scene) -> Causes:
        problems = self._shape(obj)
        return problems + self._broken(problems, obj)

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        problems = _added(self._shape, new, old)
        return problems + self._broken(problems, new, old)

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        problems = [_of_status(cause) for cause in _added(self._misfits, new, old)]
        problems += self._replicas(new, "statusReplicasPath")
        return problems + self._broken(problems, new, old)

    def update_warnings(self, new: Object, old: Object) -> list[str]:
        warnings = super().update_warnings(new, old)
        if self._rules is not None:
            excused = rules.judge(self._rules, new, old).excused
            warnings += [f"{cause.field}: {cause.message}" for cause in excused]
        return warnings

    def _shape(self, obj: Object) -> list[Cause]:
        return self._misfits(obj) + list(self._replicas(obj, "specReplicasPath"))

    def _broken(self, problems: list[Cause], new: Object, *old: Object) -> list[Cause]:
        """Causes of CEL rules. Rules do not run on values that already have the wrong type."""
        if self._rules is None:
            return []
        if any(cause.reason in _BLOCKING for cause in problems):
            return [causes.invalid("<nil>", None, _UNCHECKED)]
        return rules.judge(self._rules, new, *old).wrong

    def _misfits(self, obj: Object) -> list[Cause]:
        problems: list[Cause] = []
        self._check(obj, "", problems)
        problems += self.structure.check(obj)
        return problems

    def _replicas(self, obj: Object, which: str) -> Iterator[Cause]:
        """Problems of the replica fields that the scale subresource uses."""
        path = self.scale.get(which)
        if not path:
            return
        value: Any = obj
        for name in jsonpath.names(path):
            if not isinstance(value, dict):
                yield _inaccessible(path, value, "map[string]interface{}")
                return
            value = value.get(name)
            if value is None:
                return
        if type(value) is not int:
            yield _inaccessible(path, value, "int64")
        elif value < 0:
            yield causes.invalid(path, value, "should be a non-negative integer")
        elif value > _MAX_REPLICAS:
            why = f"should be less than or equal to {_MAX_REPLICAS} [{value}]"
            yield causes.invalid(path, value, why)

    # -- deleting ------------------------------------------------------------------------

    def removed_with(self, obj: Object, scene: Scene) -> list[Mutation]:
        """The definition itself, if it is being deleted and this was its last object."""
        if obj["metadata"].get("finalizers") or len(scene.state.collection(self.key)) != 1:
            return []
        resource = self.resource
        item = scene.state.get(DEFINITIONS, "", f"{resource.plural}.{resource.group}")
        if item is None:
            return []
        meta = msgspec.json.decode(item.data)["metadata"]
        if "deletionTimestamp" not in meta or meta.get("finalizers") != [CLEANUP]:
            return []
        return [Remove(DEFINITIONS, "", item.name, item.revision)]

    # -- reading -------------------------------------------------------------------------

    def field_refusal(self, field: str) -> str:
        return f"field label not supported: {field}"

    def selects_by(self, field: str) -> bool:
        if field == "metadata.namespace":
            return self.resource.namespaced
        return field == "metadata.name" or field in self.field_names


def _added(check: Callable[[Object], list[Cause]], new: Object, old: Object) -> list[Cause]:
    """Causes that are new: an update may leave alone what was invalid before."""
    problems = check(new)
    if not problems:
        return problems
    known = set(check(old))
    return [
        cause
        for cause in problems
        if cause not in known or _value_at(new, cause.field) != _value_at(old, cause.field)
    ]


def _of_status(cause: Cause) -> Cause:
    """A cause with the path that kube-apiserver reports for a status update."""
    inner = cause.field.removeprefix("status.")
    message = cause.message.replace(f"{cause.field} in body", f"{inner} in body")
    return Cause(cause.reason, cause.field, message)


def _value_at(obj: Object, field: str) -> Any:
    """The value that a cause is about; the whole content if it does not say."""
    value: Any = {name: inner for name, inner in obj.items() if name != "metadata"}
    if field == "<nil>":
        return value
    for step in _STEP.findall(field):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
    return value


def _inaccessible(path: str, value: Any, wanted: str) -> Cause:
    shown = value if isinstance(value, str) else causes.show(value)
    why = f"{path} accessor error: {shown} is of the type {_go_type(value)}, expected {wanted}"
    return causes.invalid(path, 0, why)


def _go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return {str: "string", bool: "bool", float: "float64"}.get(type(value), "int64")


def _selectable(version: Object) -> Iterator[tuple[str, Callable[[Object], str]]]:
    for field in version.get("selectableFields") or ():
        steps = jsonpath.parse(field["jsonPath"])
        yield field["jsonPath"].removeprefix("."), partial(_text, steps)


def _text(steps: tuple[jsonpath.Step, ...], obj: Object) -> str:
    values = jsonpath.find(obj, steps)
    if not values or values[0] is None:
        return ""
    return values[0] if isinstance(values[0], str) else causes.show(values[0])
