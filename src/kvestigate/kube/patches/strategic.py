"""Strategic merge patch: a merge patch that knows which lists are keyed, and has directives.

    $patch: replace | delete          on a map, or on an element of a keyed list
    $retainKeys: [names]              drop all other fields of this map
    $deleteFromPrimitiveList/x: [v]   remove values from the list x of scalars
    $setElementOrder/x: [...]         the wanted order of the merged list x

What a field's list or map does is asked of a `PatchSchema`. The outcome, including the order
of merged lists and which mistakes are 400, 422 or 500, is kube-apiserver's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kvestigate.errors import ApiError, BadRequest, Invalid
from kvestigate.kube.patches.keyed import Identity, arrange, identities
from kvestigate.kube.patches.merge import without_nulls
from kvestigate.kube.patches.values import LIST, MAP, OBJECT, mistyped, shown, type_of

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList"
_ORDER: Final = "$setElementOrder"


class PatchSchema(Protocol):
    """What a strategic merge patch needs to know of a type."""

    def field(self, name: str) -> PatchField:
        """How to patch a field, or of a map type any entry. Never fails."""
        ...


class Untyped:
    """The schema of what has none: maps merge, lists are replaced."""

    def field(self, name: str) -> PatchField:
        return _UNTYPED_FIELD


UNTYPED: Final[PatchSchema] = Untyped()


@dataclass(frozen=True, slots=True)
class PatchField:
    """How one field is patched: `x-kubernetes-patch-strategy` and `-merge-key`."""

    strategies: tuple[str, ...] = ()
    """Of `merge`, `replace` and `retainKeys`. The last is only for who makes a patch."""
    merge_key: str = ""
    """`name`, `containerPort`: what tells the elements of a list of objects apart."""
    schema: PatchSchema = UNTYPED
    """Of the field's value; of a list, of its elements."""
    unordered: str = ""
    """Why there are no elements to put in order; empty if there may be."""

    @property
    def merges(self) -> bool:
        return "merge" in self.strategies

    @property
    def replaces(self) -> bool:
        return "replace" in self.strategies


_UNTYPED_FIELD: Final = PatchField()


def apply(original: Mapping[str, Any], patch: Any, schema: PatchSchema) -> dict[str, Any]:
    """`original` with `patch` merged into it under the rules of `schema`."""
    if not isinstance(patch, dict):
        raise BadRequest(mistyped(patch, OBJECT))
    return _merge_map(original, patch, schema)


def _merge_map(
    original: Mapping[str, Any], patch: Mapping[str, Any], schema: PatchSchema
) -> dict[str, Any]:
    if _PATCH in patch:
        return _directed(patch)
    merged = dict(original)
    pending = dict(patch)
    if _RETAIN in pending:
        _retain_keys(merged, pending)
    for key in patch:
        if key.startswith(_ORDER):
            _merge_in_order(merged, pending, key, schema)
    for key, value in pending.items():
        if key.startswith(_DELETE):
            _delete_from_list(merged, _target(key, _DELETE), value)
        elif value is None:
            merged.pop(key, None)
        else:
            _merge_field(merged, key, value, schema)
    return merged


def _directed(patch: Mapping[str, Any]) -> dict[str, Any]:
    directive = patch[_PATCH]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    raise ApiError(f"unknown patch type: {shown(directive)} in map: {shown(patch)}")


def _merge_field(merged: dict[str, Any], key: str, value: Any, schema: PatchSchema) -> None:
    current = merged.get(key)
    if isinstance(current, dict) and isinstance(value, dict):
        field = schema.field(key)
        merged[key] = value if field.replaces else _merge_map(current, value, field.schema)
    elif isinstance(current, list) and isinstance(value, list):
        merged[key] = _merge_list(current, value, schema.field(key))
    else:
        value = _without_directives(without_nulls(value))
        if value is _DROPPED:
            merged.pop(key, None)
        else:
            merged[key] = value


def _merge_list(current: list[Any], patch: list[Any], field: PatchField) -> list[Any]:
    if not field.merges:
        return patch
    if not current and not patch:
        return current
    if _element_type(current, patch) is not dict:
        by_identity = dict(zip(identities(current), current, strict=True))
        by_identity.update(zip(identities(patch), patch, strict=True))
        return arrange(by_identity.values(), patch, current, "")
    key = field.merge_key
    if not key:
        raise ApiError(f"cannot merge lists without merge key for {shown(patch)}")
    current, patch = _directed_elements(current, patch, key)
    return arrange(_merge_elements(current, patch, field), patch, current, key)


def _merge_elements(current: list[Any], patch: list[Any], field: PatchField) -> list[Any]:
    key = field.merge_key
    merged = list(current)
    position: dict[Identity, int] = {}
    for index, identity in enumerate(identities(current, key, strict=False)):
        position.setdefault(identity, index)
    for element, identity in zip(patch, identities(patch, key), strict=True):
        index = position.setdefault(identity, len(merged))
        if index == len(merged):
            merged.append(element)
        else:
            merged[index] = _merge_map(merged[index], element, field.schema)
    return merged


def _directed_elements(
    current: list[Any], patch: list[Any], key: str
) -> tuple[list[Any], list[Any]]:
    """What is left to merge once the elements that are directives have been obeyed."""
    plain = []
    deleted = set()
    replace = False
    for element in patch:
        if _PATCH not in element:
            plain.append(element)
        elif element[_PATCH] == "delete":
            deleted.update(identities([element], key))
        elif element[_PATCH] == "replace":
            replace = True
        elif element[_PATCH] == "merge":
            raise ApiError("merging lists cannot yet be specified in the patch")
        else:
            directive = shown(element[_PATCH])
            raise ApiError(f"unknown patch type: {directive} in map: {shown(element)}")
    if replace:
        return plain, []
    if deleted:
        kept = zip(current, identities(current, key, strict=False), strict=True)
        current = [element for element, identity in kept if identity not in deleted]
    return current, plain


def _delete_from_list(merged: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        merged.pop(key, None)
        return
    current = merged.get(key)
    if not isinstance(current, list) or not isinstance(value, list) or not (current or value):
        return
    _element_type(current, value)
    unwanted = set(identities(value))
    kept = zip(current, identities(current), strict=True)
    merged[key] = [element for element, identity in kept if identity not in unwanted]


def _retain_keys(merged: dict[str, Any], pending: dict[str, Any]) -> None:
    retained = pending.pop(_RETAIN)
    if not isinstance(retained, list):
        raise BadRequest("invalid patch format of retainKeys")
    for key, value in pending.items():
        if value is not None and not key.startswith((_DELETE, _ORDER)) and key not in retained:
            raise BadRequest("invalid patch format of retainKeys")
    for key in [key for key in merged if key not in retained]:
        del merged[key]


def _merge_in_order(
    merged: dict[str, Any], pending: dict[str, Any], directive: str, schema: PatchSchema
) -> None:
    order = _list(pending.pop(directive))
    key = _target(directive, _ORDER)
    field = schema.field(key)
    current = _list(merged[key]) if key in merged else None
    patch = _list(pending[key]) if key in pending else None
    if field.unordered:
        raise ApiError(field.unordered)
    _check_order(patch or [], order, field.merge_key)
    if patch is None and current is None:
        return
    if patch is None:
        result = current or []
    elif current is None:
        result = _without_directives(patch)
    else:
        result = _merge_list(current, patch, field)
    if field.merge_key and result:
        _check_ordered_by_key(order)
    _element_type(current or [], patch or [])
    merged[key] = arrange(result, order, current or [], field.merge_key)
    pending.pop(key, None)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """The patch's elements must appear in the order list, in the same order."""
    if not patch or not order:
        return
    left = deque(patch)
    if key:
        left = deque(element for element in _maps(patch) if element.get(_PATCH) != "delete")
    for identity in identities(order, key):
        while left and key and _PATCH in left[0]:
            left.popleft()
        if left and identities([left[0]], key) == [identity]:
            left.popleft()
    if left:
        raise ApiError(
            f"The order in patch list:\n{shown(patch)}\n doesn't match {_ORDER} list:\n"
            f"{shown(order)}\n"
        )


def _check_ordered_by_key(order: list[Any]) -> None:
    for index, element in enumerate(order):
        if not isinstance(element, dict):
            raise ApiError(f"value for key {index} is not a map")


def _target(directive: str, prefix: str) -> str:
    name, slash, key = directive.partition("/")
    if name != prefix or not slash:
        which = "primitive list" if prefix == _DELETE else "setElementOrder list"
        raise BadRequest(f"invalid patch format of {which}")
    return key


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ApiError(f"expected a {LIST}, but received a {type_of(value)}")
    return value


def _maps(elements: list[Any]) -> Iterable[Mapping[str, Any]]:
    for element in elements:
        if not isinstance(element, dict):
            raise ApiError(f"expected a {MAP}, but received a {type_of(element)}")
        yield element


def _element_type(*lists: list[Any]) -> type:
    """The one type that all elements have."""
    kinds = [type(element) for elements in lists for element in elements]
    if not kinds:
        raise ApiError("no elements in any of the given slices")
    kind = kinds[0]
    if kind is list:
        raise Invalid(
            "the server rejected our request due to an error in our request",
            details={},
            hint="a strategic merge patch cannot merge lists of lists",
        )
    if kind is type(None) or any(other is not kind for other in kinds):
        raise ApiError(f"list element types are not identical: {shown(list(lists))}")
    return kind


_DROPPED: Final = object()


def _without_directives(value: Any) -> Any:
    """`value` less every map in it that is a directive; `_DROPPED` if it is one itself."""
    if isinstance(value, dict):
        if _PATCH in value:
            return _DROPPED
        cleaned = ((key, _without_directives(item)) for key, item in value.items())
        return {key: item for key, item in cleaned if item is not _DROPPED}
    if isinstance(value, list):
        return [item for item in map(_without_directives, value) if item is not _DROPPED]
    return value
