"""What the value of a mutation makes of an object: a configuration merged into it, or a JSON patch.

Raises Unpatchable where a policy is at fault, and InternalError where the outcome is no object of
the kind, in the words of kube-apiserver. Pure.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

from kvestigate.cluster.plane.admission.policies.hooks import internal
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.kube.apply.checking import misfit
from kvestigate.kube.apply.merging import merge
from kvestigate.kube.apply.shapes import Shape
from kvestigate.kube.cel.library import times
from kvestigate.kube.cel.values import Duration, Made, Timestamp, Uint, type_name
from kvestigate.kube.facts import Ownership
from kvestigate.kube.patches import json as json_patch
from kvestigate.kube.patches.json import DoesNotApply, FailedTest

_INTEGER = re.compile(r"cannot unmarshal number.* of type (int\d*)$")


class Unpatchable(Exception):
    """A mutation cannot be applied; the message says why."""


def configured(value: Any, shown: Object, kind: Kind | None) -> Object:
    """The object with the fields of an `Object{...}` merged in; lists are merged by their keys."""
    if not isinstance(value, Made):
        message = f"unsupported return type from ApplyConfiguration expression: {type_name(value)}"
        raise Unpatchable(message)
    _check_names(value)
    try:
        config = configuration(value)
    except Inexpressible as why:
        raise Unpatchable(f"invalid value of the ApplyConfiguration expression: {why}") from None
    config |= {"kind": shown["kind"], "apiVersion": shown["apiVersion"]}
    if kind is None:
        raise _inapplicable(f"{_CONVERTING}no corresponding type for {_type_text(shown)}")
    shape = kind.shape
    if wrong := misfit(config, shape):
        raise _inapplicable(f"{_CONVERTING}{wrong}")
    if atomic := list(_atomic(config, shape, "")):
        message = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise _inapplicable(f"invalid ApplyConfiguration: {message}")
    merged = merge(shown, config, shape)
    if kind.type is not None and (wrong := kind.problems(merged).mistyped):
        raise Unpatchable(f"unable to convert unstructured object to {_misfit(shown, wrong)}")
    return merged


_CONVERTING = "failed to convert patch object to typed object: "


def _inapplicable(why: str) -> Unpatchable:
    return Unpatchable(f"error applying patch: {why}")


def _misfit(shown: Object, wrong: str) -> str:
    integer = _INTEGER.search(wrong)
    why = f"error decoding from json: {wrong.removeprefix('json: ')}"
    if integer:
        why = f"cannot convert float64 to {integer[1]}"
    return f"{_type_text(shown)}: {why}"


def _type_text(shown: Object) -> str:
    """Group, version and kind as Go shows them: `/v1, Kind=Pod`."""
    group, _, version = shown["apiVersion"].rpartition("/")
    return f"{group}/{version}, Kind={shown['kind']}"


def _atomic(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """Paths of atomic lists and maps in the value: merging would drop what others put there."""
    if isinstance(value, dict):
        if shape.ownership is Ownership.WHOLE:
            yield path
        for name, inner in value.items():
            if (field := shape.fields.get(name)) is not None:
                yield from _atomic(inner, field, f"{path}.{name}")
    elif isinstance(value, list):
        if not shape.is_listed:
            yield path
        for index, inner in enumerate(value):
            if shape.element is not None:
                yield from _atomic(inner, shape.element, f"{path}[{index}]")


def patched(value: Any, shown: Object, kind: Kind) -> Object | None:
    """With a list of `JSONPatch{...}` applied; None if one of its tests fails."""
    try:
        made = json_patch.attempt(shown, [_operation(each) for each in value])
    except FailedTest:
        return None
    except DoesNotApply as problem:
        raise Unpatchable(f"JSON Patch: {problem}") from None
    if not isinstance(made, dict):
        raise internal("json: cannot unmarshal array into Go value of type map[string]interface {}")
    head = {"kind": shown["kind"], "apiVersion": shown["apiVersion"]}
    made = {"metadata": {}, **made}
    if any(made.get(name, value) != value for name, value in head.items()):
        raise internal(f"a patch cannot make something else of {_type_text(shown)}")
    problems = kind.problems(made)
    if problems.mistyped:
        raise internal(problems.mistyped)
    if problems.unknown and kind.type is not None:
        raise internal(f"strict decoding error: {', '.join(sorted(problems.warnings))}")
    return {**made, **head}


def _operation(value: Made) -> dict[str, Any]:
    operation: dict[str, Any] = {"op": value.get("op", ""), "path": value.get("path", "")}
    if value.get("from"):
        operation["from"] = value["from"]
    if "value" in value:
        held = value["value"]
        if isinstance(held, Made):
            _check_names(held)
        try:
            operation["value"] = json_value(held)
        except Inexpressible as why:
            message = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
            raise Unpatchable(f"{message}: {why}") from None
    return operation


def _check_names(value: Made) -> None:
    """Refuse `Object.spec.x{}` at another field than `spec.x`."""
    if wrong := list(_misnamed(value, value.TYPE)):
        raise Unpatchable("type mismatch: " + "\n".join(wrong))


def _misnamed(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, Made):
        if name != value.TYPE:
            yield (
                f'unexpected type name "{value.TYPE}", expected "{name}", which matches field '
                "name path from root Object type"
            )
        for key, inner in value.items():
            yield from _misnamed(inner, f"{name}.{key}")
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _misnamed(inner, name)


_EXACT = 2**53
"""From here on doubles are not exact, so that integers become text."""


class Inexpressible(Exception):
    """A CEL value that cannot be written as JSON."""


def configuration(value: Any) -> Any:
    """A value as a part of a configuration, where what has no place in JSON will not fit."""
    return _converted(value, _as_it_is)


def json_value(value: Any) -> Any:
    return _converted(value, _as_json)


def _converted(value: Any, scalar: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                message = f"unsupported type conversion from '{type_name(key)}' to string"
                raise Inexpressible(message)
        return {key: _converted(inner, scalar) for key, inner in value.items()}
    if isinstance(value, list):
        return [_converted(inner, scalar) for inner in value]
    if type(value) is float and value.is_integer():
        return int(value)
    return scalar(value)


def _as_it_is(value: Any) -> Any:
    if value is None or isinstance(value, bytes | Duration | Timestamp):
        raise Inexpressible(f"a {type_name(value)} fits no field of a configuration")
    return int(value) if isinstance(value, Uint) else value


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Duration):
        return times.duration_text(value)
    if isinstance(value, Timestamp):
        return times.timestamp_text(value)
    if isinstance(value, bool | str | float) or value is None:
        return value
    if isinstance(value, int):
        return int(value) if -_EXACT < value < _EXACT else str(int(value))
    raise Inexpressible(f"unsupported type conversion from '{type_name(value)}' to google.protobuf")
