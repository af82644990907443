"""From the parameters of a request to the options of an operation, and JSON schemas. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from kvestigate.cybernet.refusals import ConstraintViolated
from kvestigate.errors import InputError, UsageError, nearest
from kvestigate.operation import Operation, declared
from kvestigate.workspace.uploads import Upload

_OBJECTS = (msgspec.inspect.DataclassType, msgspec.inspect.StructType)

Defaults = Mapping[type, Mapping[str, Any]]
"""Class -> field -> what an agent means by leaving the field out, instead of its own default."""
Rules = Mapping[type, Mapping[str, Mapping[str, Any]]]
"""Class -> field -> what is added to the field's JSON schema; a `note` to its description."""


def options_of(
    operation: Operation[Any, Any], parameters: Mapping[str, Any], defaults: Defaults
) -> Any:
    """The input that the parameters mean. Fields of the operator's are as by default."""
    info = _info(operation)
    document = _checked(parameters, info, "", defaults)
    try:
        return msgspec.convert(document, operation.input, dec_hook=_understood)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        where = place.strip("`").removeprefix("$").lstrip(".")
        raise ConstraintViolated(f"{where}: {message}" if where else message, where) from None
    except InputError as error:
        raise ConstraintViolated(error.message, error.where or "", hint=error.hint) from None
    except UsageError as error:
        raise ConstraintViolated(error.message, "parameters", hint=error.hint) from None


@cache
def _info(operation: Operation[Any, Any]) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(operation.input)


def _understood(kind: type, value: Any) -> Any:
    """A file: fronts have made one of its base64."""
    if isinstance(value, kind):
        return value
    raise ValueError("is no base64" if kind is Upload else f"is no {kind.__name__}")


def _described(kind: type) -> dict[str, Any]:
    if kind is Upload:
        return {"type": "string", "contentEncoding": "base64"}
    raise NotImplementedError(kind)


def schema(
    operation: Operation[Any, Any], defaults: Defaults, rules: Rules | None = None
) -> dict[str, Any]:
    """JSON Schema of the parameters: an object, with what it refers to below `$defs`."""
    described = msgspec.json.schema(operation.input, schema_hook=_described)
    definitions = described.get("$defs", {})
    for cls, fields in _classes(msgspec.inspect.type_info(operation.input)):
        definition = definitions[cls.__name__]
        properties = definition.get("properties", {})
        for field in fields:
            if declared(field.type)[0].operator_only:
                del properties[field.encode_name]
        for name, value in defaults.get(cls, {}).items():
            properties[name]["default"] = value
        for name, rule in (rules or {}).get(cls, {}).items():
            properties[name] = _narrowed(properties[name], rule)
        required = definition.get("required", ())
        definition["required"] = [name for name in required if name in properties]
        definition["additionalProperties"] = False
    top = dict(definitions.pop(described["$ref"].removeprefix("#/$defs/")))
    top.pop("title", None)
    used = _references(top, definitions)
    kept = {name: definition for name, definition in definitions.items() if name in used}
    return {**top, "$defs": kept} if kept else top


def _narrowed(described: Mapping[str, Any], rule: Mapping[str, Any]) -> dict[str, Any]:
    """A property's schema, with what a cyberspace says of it."""
    narrowed = {**described, **rule}
    if "enum" in rule:
        narrowed.pop("$ref", None)
        narrowed["type"] = "string"
    if note := narrowed.pop("note", ""):
        narrowed["description"] = f"{described.get('description', '')} {note}".strip()
    return narrowed


def _references(value: Any, definitions: Mapping[str, Any]) -> set[str]:
    """The names of the definitions that a schema needs."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        match waiting.pop():
            case {"$ref": str(reference)} if (
                name := reference.removeprefix("#/$defs/")
            ) not in found:
                found.add(name)
                waiting.append(definitions[name])
            case dict() as inner:
                waiting.extend(inner.values())
            case list() as inner:
                waiting.extend(inner)
    return found


def _classes(
    info: msgspec.inspect.Type, seen: frozenset[type] = frozenset()
) -> Iterator[tuple[type, tuple[msgspec.inspect.Field, ...]]]:
    """The classes that a type is made of, with their fields."""
    match info:
        case msgspec.inspect.Metadata():
            yield from _classes(info.type, seen)
        case msgspec.inspect.UnionType():
            for inner in info.types:
                yield from _classes(inner, seen)
        case msgspec.inspect.CollectionType() | msgspec.inspect.VarTupleType():
            yield from _classes(info.item_type, seen)
        case msgspec.inspect.DictType():
            yield from _classes(info.value_type, seen)
        case msgspec.inspect.DataclassType() | msgspec.inspect.StructType() if info.cls not in seen:
            yield info.cls, info.fields
            for field in info.fields:
                yield from _classes(field.type, seen | {info.cls})


@cache
def result_schema(operation: Operation[Any, Any]) -> dict[str, Any]:
    """JSON Schema of what it answers: an object, which may have more than is named here."""
    found = msgspec.json.schema(operation.output, schema_hook=_described)
    definitions = found["$defs"]
    name = found["$ref"].removeprefix("#/$defs/")
    return {**definitions[name], "$defs": definitions}


@cache
def part_schema(operation: Operation[Any, Any]) -> dict[str, Any]:
    """The same of an answer that is projected or cut: no member has to be there."""
    found: dict[str, Any] = _optional(result_schema(operation))
    return found


def _optional(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            name: _optional(inner)
            for name, inner in schema.items()
            if not (name == "required" and isinstance(inner, list))
        }
    return [_optional(inner) for inner in schema] if isinstance(schema, list) else schema


def _checked(value: Any, info: msgspec.inspect.Type, path: str, defaults: Defaults) -> Any:
    """The document with the agents' defaults in it; ConstraintViolated if a field is not theirs.

    A mistyped field would otherwise be a field left out, and mean its default.
    """
    match info:
        case msgspec.inspect.Metadata():
            return _checked(value, info.type, path, defaults)
        case msgspec.inspect.UnionType():
            for inner in info.types:
                value = _checked(value, inner, path, defaults)
            return value
        case msgspec.inspect.DataclassType() | msgspec.inspect.StructType() if isinstance(
            value, Mapping
        ):
            return _object(value, info, path, defaults)
        case msgspec.inspect.DictType() if isinstance(value, Mapping):
            item = info.value_type
            return {
                key: _checked(each, item, f"{path}{key}.", defaults) for key, each in value.items()
            }
        case msgspec.inspect.CollectionType() | msgspec.inspect.VarTupleType() if isinstance(
            value, list
        ):
            base, item = path.removesuffix("."), info.item_type
            return [
                _checked(each, item, f"{base}[{index}].", defaults)
                for index, each in enumerate(value)
            ]
    return value


def _object(
    value: Mapping[str, Any],
    info: msgspec.inspect.DataclassType | msgspec.inspect.StructType,
    path: str,
    defaults: Defaults,
) -> dict[str, Any]:
    known = {field.encode_name: field.type for field in info.fields}
    theirs = sorted(name for name, kind in known.items() if not declared(kind)[0].operator_only)
    for name in value:
        if name not in known:
            raise _unknown(f"{path}{name}", name, theirs)
        if name not in theirs:
            raise ConstraintViolated(
                f"{path}{name}: cannot be set by agents", f"{path}{name}", hint="leave it out"
            )
    given = {
        name: _checked(each, known[name], f"{path}{name}.", defaults)
        for name, each in value.items()
    }
    for field in info.fields:  # a part that is left out as a whole has the agents' defaults, too
        kind = _bare(field.type)
        own = defaults.get(kind.cls) if isinstance(kind, _OBJECTS) else None
        if own and field.encode_name not in given:
            given[field.encode_name] = dict(own)
    return {**defaults.get(info.cls, {}), **given}


def _bare(info: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """The type without what is said about it."""
    return _bare(info.type) if isinstance(info, msgspec.inspect.Metadata) else info


def _unknown(path: str, name: str, known: list[str]) -> ConstraintViolated:
    near = nearest(name, known)
    return ConstraintViolated(
        f"{path}: no such field",
        path,
        hint=f"did you mean {near}?" if near else f"there are: {', '.join(known) or 'none'}",
    )
