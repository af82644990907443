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
