"""From the parameters of a request to the options of an operation, and JSON schemas. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from kvestigate.cybernet.refusals import ConstraintViolated
from kvestigate.errors import UsageError
from kvestigate.operation import Operation
from kvestigate.workspace.spec import DEFAULT_ROOT, GpuSpec, SourceSpec, WorkspaceSpec
from kvestigate.workspace.uploads import Upload

OURS = frozenset({"apply", "follow", "owner", "root"})
"""Fields that the gateway sets: an agent neither gives nor sees them."""

_OPERATORS = frozenset({"root", "sources"})
"""Fields of a workspace that the policy refuses: an agent need not know that there are such."""


def options_of(
    operation: Operation, parameters: Mapping[str, Any], owner: str, *, may_cordon: bool = True
) -> Any:
    """The options that the parameters mean, to be carried out in the name of `owner`.

    Unless agents may cordon nodes, a workspace that does not speak of it leaves its node open.
    """
    fields = _fields(msgspec.inspect.type_info(operation.input))
    for name in sorted(OURS & parameters.keys()):
        raise ConstraintViolated(f"{name}: is not for agents to set", name, hint="leave it out")
    ours = {"apply": True, "follow": False, "owner": owner, "root": DEFAULT_ROOT}
    document = {**parameters, **{name: ours[name] for name in OURS & fields.keys()}}
    if not may_cordon and isinstance(document.get("workspace"), Mapping):
        document["workspace"] = _left_open(document["workspace"])
    _refuse_unknown(document, msgspec.inspect.type_info(operation.input), "")
    try:
        return msgspec.convert(document, operation.input, dec_hook=_understood)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        where = place.strip("`").removeprefix("$").lstrip(".")
        raise ConstraintViolated(f"{where}: {message}" if where else message, where) from None
    except UsageError as error:
        where = getattr(error, "where", None) or ""
        raise ConstraintViolated(error.message, where, hint=error.hint) from None


def _understood(kind: type, value: Any) -> Any:
    """A file: fronts have made one of its base64."""
    if isinstance(value, kind):
        return value
    raise ValueError("is no base64" if kind is Upload else f"is no {kind.__name__}")


def _described(kind: type) -> dict[str, Any]:
    if kind is Upload:
        return {"type": "string", "contentEncoding": "base64"}
    raise NotImplementedError(kind)


def _left_open(workspace: Mapping[str, Any]) -> Mapping[str, Any]:
    gpu = workspace.get("gpu", {})
    if not isinstance(gpu, Mapping):
        return workspace  # a mistake, to be told of as such
    return {**workspace, "gpu": {"cordon_node": False, **gpu}}


@cache
def schema(operation: Operation, *, may_cordon: bool = True) -> dict[str, Any]:
    """JSON Schema of the parameters: an object, with what it refers to below `$defs`."""
    found = msgspec.json.schema(operation.input, schema_hook=_described)
    definitions = found.get("$defs", {})
    if not may_cordon and GpuSpec.__name__ in definitions:
        definitions[GpuSpec.__name__]["properties"]["cordon_node"]["default"] = False
    for name in (
        _OPERATORS & definitions.get(WorkspaceSpec.__name__, {}).get("properties", {}).keys()
    ):
        del definitions[WorkspaceSpec.__name__]["properties"][name]
    definitions.pop(SourceSpec.__name__, None)
    top = dict(definitions.pop(found["$ref"].removeprefix("#/$defs/")))
    top.pop("title", None)
    top["properties"] = {k: v for k, v in top.get("properties", {}).items() if k not in OURS}
    top["required"] = [name for name in top.get("required", ()) if name not in OURS]
    top["additionalProperties"] = False
    return {**top, "$defs": definitions} if definitions else top


@cache
def result_schema(operation: Operation) -> dict[str, Any]:
    """JSON Schema of what it answers: an object, which may have more than is named here."""
    found = msgspec.json.schema(operation.output, schema_hook=_described)
    definitions = found["$defs"]
    name = found["$ref"].removeprefix("#/$defs/")
    return {**definitions[name], "$defs": definitions}


def _fields(info: msgspec.inspect.Type) -> dict[str, msgspec.inspect.Type]:
    if isinstance(info, msgspec.inspect.DataclassType | msgspec.inspect.StructType):
        return {field.encode_name: field.type for field in info.fields}
    return {}


def _refuse_unknown(value: Any, info: msgspec.inspect.Type, path: str) -> None:
    """A mistyped field would otherwise be a field left out, and mean its default."""
    if isinstance(info, msgspec.inspect.UnionType):
        for inner in info.types:
            if _fields(inner):
                _refuse_unknown(value, inner, path)
    elif isinstance(value, Mapping) and (known := _fields(info)):
        for name, inner in value.items():
            if name not in known:
                raise _unknown(f"{path}{name}", name, sorted(known.keys() - OURS))
            _refuse_unknown(inner, known[name], f"{path}{name}.")
    elif isinstance(value, Mapping) and isinstance(info, msgspec.inspect.DictType):
        for name, inner in value.items():
            _refuse_unknown(inner, info.value_type, f"{path}{name}.")
    elif isinstance(value, list) and isinstance(
        info, msgspec.inspect.CollectionType | msgspec.inspect.VarTupleType
    ):
        for index, inner in enumerate(value):
            _refuse_unknown(inner, info.item_type, f"{path.removesuffix('.')}[{index}].")


def _unknown(path: str, name: str, known: list[str]) -> ConstraintViolated:
    near = difflib.get_close_matches(name, known, n=1)
    return ConstraintViolated(
        f"{path}: no such field",
        path,
        hint=f"did you mean {near[0]}?" if near else f"there are: {', '.join(known) or 'none'}",
    )
