"""OpenAPI version 2 in protobuf, the only form in which kubectl reads it. Pure.

kubectl requests it for a kind that is in no version 3 document, such as a custom resource whose
definition does not exist yet. The field numbers are those of gnostic's `openapi.v2` messages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ASKED = (MEDIA, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
"""Media types in Accept; the second is malformed, but most clients send it."""

Write = Callable[[int, Any], bytes]
"""A field of this number with this JSON value."""
Message = Mapping[str, tuple[int, Write]]
"""The fields of a message by their names in JSON; `x-` stands for all extensions."""

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_EXTENSION = "x-"


def encode(document: dict[str, Any]) -> bytes:
    """A document whose paths and definitions are encoded already, by `path` and `schema`."""
    return _encoded(_DOCUMENT, document)


def path(item: dict[str, Any]) -> bytes:
    """The operations on a path."""
    return _encoded(_ITEM, item)


def schema(value: dict[str, Any]) -> bytes:
    return _encoded(_SCHEMA, value)


def _encoded(message: Message, value: Mapping[str, Any]) -> bytes:
    pieces = []
    for name, field in value.items():
        if name in message:
            number, write = message[name]
            pieces.append(write(number, field))
        elif name.startswith(_EXTENSION):
            number, write = message[_EXTENSION]
            pieces.append(write(number, {name: field}))
    return b"".join(pieces)


# -- kinds of fields -------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _part(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _text(number: int, value: str) -> bytes:
    return _part(number, value.encode())


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(int(value))


def _float(number: int, value: float) -> bytes:
    return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def _any(number: int, value: object) -> bytes:
    """A value of any type, as YAML text; JSON is YAML."""
    return _part(number, _part(2, msgspec.json.encode(value)))


def _each(write: Write) -> Write:
    return lambda number, values: b"".join(write(number, value) for value in values)


def _named(write: Write) -> Write:
    """Entries of a map: a name and a value each."""
    return lambda number, values: b"".join(
        _part(number, _text(1, name) + write(2, value)) for name, value in values.items()
    )


def _within(inner: int, write: Write) -> Write:
    """A message that wraps the value in its field number `inner`."""
    return lambda number, value: _part(number, write(inner, value))


def _message(message: Message) -> Write:
    return lambda number, value: _part(number, _encoded(message, value))


def _schema(number: int, value: dict[str, Any]) -> bytes:
    return _part(number, _encoded(_SCHEMA, value))


def _additional_properties(number: int, value: dict[str, Any] | bool) -> bytes:
    """`additionalProperties`: a schema or a boolean."""
    return _part(number, _integer(2, value) if isinstance(value, bool) else _schema(1, value))


def _parameter(number: int, value: dict[str, Any]) -> bytes:
    where = value["in"]
    if where == "body":
        parameter = _part(1, _encoded(_BODY, value))
    else:
        place, message = {"query": (3, _QUERY), "path": (4, _PATH)}[where]
        parameter = _part(2, _part(place, _encoded(message, value)))
    return _part(number, _part(1, parameter))


# -- messages --------------------------------------------------------------------------------

_SCHEMA: Message = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _float),
    "maximum": (7, _float),
    "exclusiveMaximum": (8, _integer),
    "minimum": (9, _float),
    "exclusiveMinimum": (10, _integer),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _integer),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _each(_text)),
    "enum": (20, _each(_any)),
    "additionalProperties": (21, _additional_properties),
    "type": (22, _within(1, _text)),
    "items": (23, _within(1, _schema)),
    "allOf": (24, _each(_schema)),
    "properties": (25, _within(1, _named(_schema))),
    "example": (30, _any),
    _EXTENSION: (31, _named(_any)),
}
_BODY: Message = {"name": (2, _text), "in": (3, _text), "schema": (5, _schema)}
_QUERY: Message = {
    "in": (2, _text),
    "name": (4, _text),
    "type": (6, _text),
    "uniqueItems": (20, _integer),
}
_PATH: Message = {
    "required": (1, _integer),
    "in": (2, _text),
    "name": (4, _text),
    "type": (5, _text),
    "uniqueItems": (19, _integer),
}
_RESPONSE: Message = {"description": (1, _text), "schema": (2, _within(1, _schema))}
_OPERATION: Message = {
    "operationId": (5, _text),
    "produces": (6, _each(_text)),
    "consumes": (7, _each(_text)),
    "parameters": (8, _each(_parameter)),
    "responses": (9, _within(1, _named(_within(1, _message(_RESPONSE))))),
    _EXTENSION: (13, _named(_any)),
}
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}
_ITEM: Message = {
    **{method: (number, _message(_OPERATION)) for method, number in _METHODS.items()},
    "parameters": (9, _each(_parameter)),
}
_KEY: Message = {"type": (1, _text), "name": (2, _text), "in": (3, _text)}
_DOCUMENT: Message = {
    "swagger": (1, _text),
    "info": (2, _message({"title": (1, _text), "version": (2, _text)})),
    "paths": (8, _within(2, _named(_part))),
    "definitions": (9, _within(1, _named(_part))),
    "security": (12, _each(_within(1, _named(_within(1, _each(_text)))))),
    "securityDefinitions": (13, _within(1, _named(_within(2, _message(_KEY))))),
}
