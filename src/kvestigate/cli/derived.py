"""Commands derived from operations: parameters, flags, help and examples from the declaration.

Every field of the input becomes an option, or an argument where its annotation says so: text,
numbers, switches, choices, lists (repeatable), and anything larger as a YAML or JSON file. Fields
without a default are required. An operation has a function of its own in `cli` only where its
command does more than run it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

import click
import msgspec
from msgspec import inspect

from kvestigate import inputs
from kvestigate.cli.command import Command, operation_command
from kvestigate.cli.confirm import APPLY, DRY_RUN, EXIT_CODE, UNDERSTOOD
from kvestigate.cli.files import json_option
from kvestigate.cli.node_access import through_daemon_set
from kvestigate.cli.parameters import number, whole_number
from kvestigate.cli.plane_server import data_option, server_access
from kvestigate.cli.run import Run
from kvestigate.errors import InputError
from kvestigate.inputs import bare, class_of, fields, is_document
from kvestigate.operation import Operation, Param, Reach, declared

_RESERVED = frozenset({"via", "json_path", "data"})
_CONFIRMING = frozenset({APPLY, DRY_RUN, EXIT_CODE, UNDERSTOOD})
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def command_of(operation: Operation[Any, Any]) -> Command:
    """The command of an operation that has no function of its own."""

    async def call(run: Run, **values: Any) -> int:
        via, path = values.pop("via", None), values.pop("json_path", None)
        if operation.reaches is Reach.PLANES:
            run = replace(run, resolve=partial(server_access, run.options, values.pop("data")))
        given = input_of(run, values)
        return operation.code(given, await run(given, via=via, json_path=path))

    call.__doc__ = "\n\n".join(filter(None, (operation.summary, operation.description)))
    decorated: Callable[..., Any] = call
    if operation.reaches is Reach.HOSTS:
        decorated = through_daemon_set(decorated)
    if operation.reaches is Reach.PLANES:
        decorated = data_option(decorated)
    if operation.json_file:
        decorated = json_option(decorated)
    taken = _RESERVED | _CONFIRMING if operation.consequence else _RESERVED
    names = {field.name for field in fields(operation.input)}
    assert not names & taken, f"{operation.name}: {names & taken} are names of flags"
    decorated = parameters(operation.input)(decorated)
    words = operation.name.replace(".", " ").replace("_", "-")
    examples = operation.examples or (f"kvestigate {words}",)
    return operation_command(operation, examples=examples)(decorated)


def parameters(input: type, without: Collection[str] = ()) -> Decorator:
    """Add an option or an argument for every field of an input, but for those in `without`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for field in reversed([field for field in fields(input) if field.name not in without]):
            grouped = declared(field.type)[0].is_group
            add = parameters(class_of(field)) if grouped else _parameter(field)
            function = add(function)
        return function

    return decorate


def input_of(run: Run, values: dict[str, Any]) -> Any:
    """The input that the command line means; what was not given keeps its default."""
    return inputs.input_of(run.operation.input, values, run.options.namespace, _document)


def _parameter(field: inspect.Field) -> Decorator:
    param, described = declared(field.type)
    if param.is_namespace:
        return lambda function: function
    attributes = _attributes(field, param)
    if param.argument:
        return click.argument(field.name, **attributes)
    flags = param.flags or (f"--{field.name.replace('_', '-')}",)
    described = described or f"The {field.name.replace('_', ' ')}."
    if attributes.get("multiple"):
        described = f"{described.rstrip('.')}; repeatable."
    if field.default not in (msgspec.NODEFAULT, None, "", (), False):
        described += f"  [default: {param.show(getattr(field.default, 'value', field.default))}]"
    return click.option(*flags, field.name, help=described, **attributes)


def _attributes(field: inspect.Field, param: Param) -> dict[str, Any]:
    """What click has to know of the type."""
    kind = bare(field.type)
    if isinstance(kind, inspect.BoolType):
        return {"is_flag": True, "default": None}
    found: dict[str, Any] = {}
    listed = isinstance(kind, inspect.VarTupleType | inspect.ListType | inspect.DictType)
    if listed and (param.parse is not None or not is_document(field.type)):
        item = kind.item_type if isinstance(kind, inspect.VarTupleType | inspect.ListType) else kind
        found["type"] = str if param.parse else _type(bare(item))
        found["nargs" if param.argument else "multiple"] = -1 if param.argument else True
    elif param.parse is not None:
        found["type"] = _parsing(param.parse)
    elif is_document(field.type):
        found["metavar"] = "FILE"
    else:
        found["type"] = _type(kind)
    if param.metavar:
        found["metavar"] = param.metavar
    return {**found, "required": field.required}


def _type(kind: inspect.Type) -> Any:
    match kind:
        case inspect.IntType(ge=int(lowest), le=int(highest)):
            return whole_number(lowest, highest)
        case inspect.IntType():
            return int
        case inspect.FloatType():
            return number
        case inspect.LiteralType():
            return click.Choice([str(value) for value in kind.values])
        case inspect.EnumType():
            return click.Choice([str(member.value) for member in kind.cls])
    return str


def _parsing(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return parsed


def _document(path: str) -> Any:
    from pathlib import Path

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from None
    return inputs.one_document(data, path)
