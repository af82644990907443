"""What a schema says of an object's shape: which fields it has and what they default to. Pure.

Compiled once for each definition. Objects are never changed: `shaped` builds a new one, so
that the body of a request stays as it was sent and can be applied again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kvestigate.kube import causes, facts, names, normal, schema
from kvestigate.kube.causes import Cause

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
OWN_FIELDS = ("apiVersion", "kind", "metadata")
"""What every object has, whatever its schema says."""
_CONTAINERS = (dict, list)


_encode = msgspec.json.Encoder(order="deterministic").encode

_SAYING = {
    "additionalProperties",
    "default",
    "items",
    "nullable",
    "properties",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-preserve-unknown-fields",
}
"""What of a schema is about the shape."""


class Structure:
    """One value in a schema, and those inside it."""

    __slots__ = (
        "_defaults",
        "_keeps",
        "additional",
        "default",
        "embedded",
        "items",
        "list_keys",
        "list_type",
        "nullable",
        "preserves",
        "properties",
        "watchful",
    )

    def __init__(
        self, schema: Mapping[str, Any], *, root: bool = False, defaults: bool = True
    ) -> None:
        """Without `defaults` it only takes away."""

        def part(inner: Any) -> Structure | None:
            return _of(inner, defaults=defaults) if isinstance(inner, dict) else None

        fields = schema.get("properties") or {}
        self.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        own = OWN_FIELDS if root or self.embedded else ()
        self.properties = {
            name: _of(inner, defaults=defaults) for name, inner in fields.items() if name not in own
        }
        extra = schema.get("additionalProperties")
        self.additional, self.items = part(extra), part(schema.get("items"))
        self.preserves = extra is True or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.nullable = bool(schema.get("nullable"))
        self.default = schema.get("default") if defaults else None
        self.list_type = schema.get("x-kubernetes-list-type") or ""
        self.list_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self._keeps = frozenset(own)
        self._defaults = [
            (name, inner) for name, inner in self.properties.items() if inner.default is not None
        ]
        self.watchful: bool = (
            self.embedded
            or self.list_type in ("set", "map")
            or any(inner.watchful for inner in self._inside())
        )
        """Whether something in here has rules beyond those of its type."""

    def _inside(self) -> Iterator[Structure]:
        yield from self.properties.values()
        if self.additional is not None:
            yield self.additional
        if self.items is not None:
            yield self.items

    def inner(self, name: str) -> Structure | None:
        return self.properties.get(name, self.additional)

    def shaped(self, value: Any) -> Any:
        """The value without unknown fields and droppable nulls, and with defaults."""
        if type(value) is dict:
            return self._object(value)
        if type(value) is list and self.items is not None:
            element = self.items._element
            return [each if type(each) is str else element(each) for each in value]
        return value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        known, other = self.properties, self.additional
        for name, each in value.items():
            inner = known.get(name, other)
            if inner is None:
                if self.preserves or name in self._keeps:
                    made[name] = self._kept(name, each)
            elif each is not None:
                made[name] = inner.shaped(each) if type(each) in _CONTAINERS else each
            elif inner.nullable:
                made[name] = None
            elif inner.default is not None:
                made[name] = inner._defaulted()
        for name, inner in self._defaults:
            if name not in made:
                made[name] = inner._defaulted()
        return made

    def _kept(self, name: str, value: Any) -> Any:
        if self.embedded and name == "metadata" and isinstance(value, dict):
            return normal.normalised(value, facts.definition(OBJECT_META))
        return value

    def _element(self, value: Any) -> Any:
        if value is None and not self.nullable and self.default is not None:
            return self._defaulted()
        return self.shaped(value)

    def _defaulted(self) -> Any:
        return self.shaped(copy.deepcopy(self.default))

    def unknown(self, value: Any) -> list[str]:
        """The paths of fields that the schema does not know, then those of embedded metadata."""
        paths: list[str] = []
        alien: list[str] = []
        self._find_unknown(value, "", paths, alien)
        return sorted(paths) + sorted(alien)

    def _find_unknown(self, value: Any, path: str, paths: list[str], alien: list[str]) -> None:
        if type(value) is list:
            if self.items is not None:
                for position, each in enumerate(value):
                    if type(each) in _CONTAINERS:
                        self.items._find_unknown(each, f"{path}[{position}]", paths, alien)
        elif type(value) is dict:
            known, other = self.properties, self.additional
            for name, each in value.items():
                inner = known.get(name, other)
                at = f"{path}.{name}" if path else name
                if inner is not None:
                    if type(each) in _CONTAINERS:
                        inner._find_unknown(each, at, paths, alien)
                elif self.embedded and name == "metadata" and isinstance(each, dict):
                    unknown = schema.problems(each, facts.definition(OBJECT_META)).unknown
                    alien += (f"{at}.{field}" for field in unknown)
                elif not self.preserves and name not in self._keeps:
                    paths.append(at)

    def mistyped(self, value: Any, path: str = "") -> str:
        """Why the metadata of the first malformed embedded object is invalid; empty if none is."""
        if not self.watchful:
            return ""
        inside: list[tuple[Structure | None, Any, str]] = []
        if isinstance(value, list):
            inside = [(self.items, each, f"{path}[{at}]") for at, each in enumerate(value)]
        elif isinstance(value, dict):
            for name in ("apiVersion", "kind") if self.embedded else ():
                if value.get(name) is not None and not isinstance(value[name], str):
                    return str(causes.invalid(f"{path}.{name}", value[name], "must be a string"))
            if self.embedded and "metadata" in value:
                meta = value["metadata"]
                why = schema.problems(meta, facts.definition(OBJECT_META)).mistyped
                if why:
                    shown = dict(sorted(meta.items())) if isinstance(meta, dict) else meta
                    return str(causes.invalid(f"{path}.metadata", shown, why))
            inside = [
                (self.inner(name), each, f"{path}.{name}" if path else name)
                for name, each in value.items()
            ]
        mismatches = (inner.mistyped(each, at) for inner, each, at in inside if inner is not None)
        return next(filter(None, mismatches), "")

    def check(self, value: Any, path: str = "") -> Iterator[Cause]:
        """What is wrong beyond the types: repeated elements, nameless embedded objects."""
        if not self.watchful:
            return
        if isinstance(value, list):
            yield from self._check_list(value, path)
        elif isinstance(value, dict):
            yield from self._check_object(value, path)

    def _check_list(self, value: list[Any], path: str) -> Iterator[Cause]:
        if self.list_type == "set":
            yield from _repeated(path, value)
        elif self.list_type == "map":
            yield from self._check_keyed(value, path)
        if self.items is not None:
            for position, each in enumerate(value):
                yield from self.items.check(each, f"{path}[{position}]")

    def _check_keyed(self, value: list[Any], path: str) -> Iterator[Cause]:
        for position, each in enumerate(value):
            if each is not None and not isinstance(each, dict):
                why = "must be an object for an array of list-type map"
                yield causes.invalid(f"{path}[{position}]", each, why)
                return
        yield from _repeated(path, [self._key(each) for each in value])

    def _check_object(self, value: dict[str, Any], path: str) -> Iterator[Cause]:
        if self.embedded:
            for name in ("apiVersion", "kind"):
                if not value.get(name):
                    yield causes.required(f"{path}.{name}")
            for problem in names.label_1035_problems((value.get("kind") or "a").lower()):
                why = f"may have mixed case, but should otherwise match: {problem}"
                yield causes.invalid(f"{path}.kind", value["kind"], why)
        for name, each in value.items():
            inner = self.inner(name)
            if inner is not None:
                yield from inner.check(each, f"{path}.{name}" if path else name)

    def _key(self, element: Any) -> Any:
        if not isinstance(element, dict):
            return element
        return {name: element[name] for name in self.list_keys if name in element}


def _repeated(path: str, values: list[Any]) -> Iterator[Cause]:
    seen: set[bytes] = set()
    reported: set[bytes] = set()
    for position, value in enumerate(values):
        key = _encode(value)
        if key not in seen:
            seen.add(key)
        elif key not in reported:
            reported.add(key)
            yield causes.duplicate(f"{path}[{position}]", value)


def _of(schema: Mapping[str, Any], *, defaults: bool) -> Structure:
    """The structure of a schema; plain scalars share a single one."""
    return _LEAF if _SAYING.isdisjoint(schema) else Structure(schema, defaults=defaults)


_LEAF = Structure({})
