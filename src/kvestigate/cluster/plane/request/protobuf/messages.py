"""Messages of the built-in types.

`numbers.json` beside this file lists the fields of each definition by number (generated, see
`tools/protobuf_facts.py`); what they hold is in the facts table. What a sender left empty is
in the result as an empty value: `kube.normal` knows which of those JSON would have.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kvestigate.cluster.plane.request.protobuf import scalars
from kvestigate.cluster.plane.request.protobuf.wire import (
    Malformed,
    Value,
    fields,
    packed,
    signed,
    text,
)
from kvestigate.kube import facts, normal
from kvestigate.kube.facts import Definition, Field, Type

Read = Callable[[Any], Any]
"""From a value on the wire to one of JSON."""


def read(data: bytes, of: Definition) -> dict[str, Any]:
    """An object of a built-in type, without its kind and apiVersion."""
    return _message(of.name).read(data)


class Shape(enum.Enum):
    ONE = "one"
    LIST = "list"
    MAP = "map"
    SPREAD = "spread"
    """A message whose fields JSON has in the object around it."""


class Step(NamedTuple):
    """What to do with a field of one number."""

    name: str
    shape: Shape
    wire: type[Value]
    """How it is sent."""
    convert: Read


class Message:
    """Reads the messages of one definition. Its plan is made late: a type may hold itself."""

    __slots__ = ("_plan", "_prepare")

    def __init__(self, prepare: Callable[[], dict[int, Step]]) -> None:
        self._plan: dict[int, Step] | None = None
        self._prepare = prepare

    def read(self, data: bytes) -> dict[str, Any]:
        obj: dict[str, Any] = {}
        self.fill(obj, data)
        return obj

    def fill(self, obj: dict[str, Any], data: bytes) -> None:
        plan = self._plan
        if plan is None:
            plan = self._plan = self._prepare()
        for number, value in fields(data):
            step = plan.get(number)
            if step is None:
                continue
            name, shape, wire, convert = step
            if type(value) is not wire:
                numbers = _packed(step, value)
                obj.setdefault(name, []).extend(numbers)
            elif shape is Shape.ONE:
                obj[name] = convert(value)
            elif shape is Shape.LIST:
                obj.setdefault(name, []).append(convert(value))
            elif shape is Shape.MAP:
                key, entry = convert(value)
                obj.setdefault(name, {})[key] = entry
            else:
                obj.update(convert(value))


def _packed(step: Step, value: Value) -> list[Any]:
    """A list of numbers may be sent as one field; nothing else may change its encoding."""
    if step.shape is Shape.LIST and step.wire is int and isinstance(value, bytes):
        return [step.convert(number) for number in packed(value)]
    raise Malformed(f"proto: wrong wireType for field {step.name}")


@cache
def _message(name: str) -> Message:
    def prepare() -> dict[int, Step]:
        words = iter(_numbers().get(name, "").split())
        return _plan(words, facts.definition(name).fields)

    return Message(prepare)


@cache
def _numbers() -> dict[str, str]:
    table = Path(__file__).with_name("numbers.json").read_bytes()
    return msgspec.json.decode(table, type=dict[str, str])


def _plan(words: Iterator[str], types: Mapping[str, Field]) -> dict[int, Step]:
    """Takes the words of a row up to its end, or to the `)` that closes a nested one."""
    plan: dict[int, Step] = {}
    for number, word in enumerate(words, 1):
        if word == ")":
            break
        if word == "(":
            plan[number] = _spread(_plan(words, types))
        elif word != "-":
            plan[number] = _step(word, types[word])
    return plan


def _spread(nested: dict[int, Step]) -> Step:
    return Step("", Shape.SPREAD, bytes, Message(lambda: nested).read)


def _step(name: str, field: Field) -> Step:
    if field.element is None:
        return Step(name, Shape.ONE, *_scalar(field))
    if field.type is Type.LIST:
        return Step(name, Shape.LIST, *_scalar(field.element))
    return Step(name, Shape.MAP, bytes, _entry(field.element))


def _entry(of: Field) -> Read:
    """An entry of a map is a message of key and value."""
    if of.type is Type.LIST:
        # A list cannot be a value by itself, so it is wrapped in a message of its own.
        items = Message(lambda: {1: _step("items", of)})
        value = Step("value", Shape.ONE, bytes, lambda data: items.read(data).get("items", []))
    else:
        value = _step("value", of)
    entry = Message(lambda: {1: Step("key", Shape.ONE, bytes, text), 2: value})

    def convert(data: bytes) -> tuple[str, Any]:
        pair = entry.read(data)
        return pair.get("key", ""), pair["value"] if "value" in pair else value.convert(b"")

    return convert


def _scalar(field: Field) -> tuple[type[Value], Read]:
    if field.type is not Type.DEFINED:
        return _SCALARS[field.type]
    known = _SPECIAL.get(field.definition.rpartition(".")[2])
    if known is not None:
        return bytes, known
    type_ = facts.definition(field.definition).scalar
    return (bytes, _message(field.definition).read) if type_ is None else _SCALARS[type_]


_SCALARS: dict[Type, tuple[type[Value], Read]] = {
    Type.STRING: (bytes, text),
    Type.BYTES: (bytes, scalars.base64_text),
    Type.BOOLEAN: (int, bool),
    Type.INT32: (int, signed),
    Type.INT64: (int, signed),
    Type.NUMBER: (float, float),
    Type.QUANTITY: (bytes, scalars.quantity),
    Type.INT_OR_STRING: (bytes, scalars.int_or_string),
    Type.TIME: (bytes, scalars.time),
    Type.MICROTIME: (bytes, scalars.micro_time),
    Type.OBJECT: (bytes, scalars.raw_json),
    Type.ANY: (bytes, scalars.raw_json),
}


# --- either a schema or something simpler -------------------------------------------------

_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


def _schema(data: Any) -> dict[str, Any]:
    # The facts table calls these fields anything, so nobody else brings them to normal form.
    return normal.normalised(_message(_SCHEMA).read(data), facts.definition(_SCHEMA))


def _schema_or(each: Read) -> Read:
    """One schema (field 1) or a list (field 2)."""

    def convert(data: bytes) -> Any:
        sent = fields(data)
        listed = [each(value) for number, value in sent if number == 2]
        single = [_schema(value) for number, value in sent if number == 1]
        return listed or (single[-1] if single else None)

    return convert


def _schema_or_flag(data: bytes) -> Any:
    sent = dict(fields(data))
    return _schema(sent[2]) if 2 in sent else bool(sent.get(1))


_SPECIAL: dict[str, Read] = {
    "CustomResourceSubresourceStatus": lambda data: {},
    "JSONSchemaPropsOrArray": _schema_or(_schema),
    "JSONSchemaPropsOrBool": _schema_or_flag,
    "JSONSchemaPropsOrStringArray": _schema_or(text),
}
