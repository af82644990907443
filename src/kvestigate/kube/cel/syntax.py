"""The parts of a parsed expression."""

from __future__ import annotations

from typing import Any

import msgspec


class Node(msgspec.Struct, frozen=True):
    at: int
    """The offset in the source at which mistakes in this part are told."""


class Literal(Node, frozen=True):
    value: Any


class Ident(Node, frozen=True):
    name: str


class Select(Node, frozen=True):
    """`operand.field`, `operand.?field`, or `has(operand.field)`."""

    operand: Node
    field: str
    optional: bool = False
    tests: bool = False


class Call(Node, frozen=True):
    """A function, a method of `target`, or an operator such as `_+_`."""

    name: str
    args: tuple[Node, ...]
    target: Node | None = None


class ListOf(Node, frozen=True):
    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()
    """The positions of those written `?e`, left out if they have no value."""


class Entry(msgspec.Struct, frozen=True):
    key: Node
    value: Node
    optional: bool


class MapOf(Node, frozen=True):
    entries: tuple[Entry, ...]


class Given(msgspec.Struct, frozen=True):
    """A field of a `Make`."""

    at: int
    """The colon: where its type is told to be wrong."""
    name: str
    value: Node
    optional: bool


class Make(Node, frozen=True):
    """`Object.spec{replicas: 3}`: an object of a type that has a name."""

    type: str
    fields: tuple[Given, ...]


def qualified(node: Node) -> str:
    """The name that a chain of selections spells; empty if it is no such chain."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.optional and not node.tests:
        inner = qualified(node.operand)
        return f"{inner}.{node.field}" if inner else ""
    return ""
