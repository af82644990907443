"""How large a part of an expression may be, and arithmetic on that which ends at a limit. Pure."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from kvestigate.kube.cel.extents import Extent
from kvestigate.kube.cel.types import DYN, Type

MOST = 2**64 - 1
TRAVERSAL, REGEX = 0.1, 0.25
UNSEEN = Extent()
"""Of what a path leads to that the schema does not have."""


class Size(NamedTuple):
    least: int
    most: int


UNKNOWN = Size(0, MOST)
ONE = Size(1, 1)


class Part(msgspec.Struct):
    """What is known of a part of an expression."""

    cost: int
    type: Type = DYN
    size: Size | None = None
    extent: Extent | None = None
    """Of what its path leads to; None if it has no path."""
    entry: Size | None = None
    """Of the elements of a literal."""
    literal: object = None

    @property
    def known_size(self) -> Size:
        if self.size is not None:
            return self.size
        if self.extent is not None and self.extent is not UNSEEN:
            return Size(0, self.extent.most)
        if _is_scalar(self.type):
            return ONE
        return UNKNOWN


def _is_scalar(type_: Type) -> bool:
    if type_.name == "optional_type":
        return _is_scalar(type_.params[0])
    return type_.name in ("bool", "int", "uint", "double", "duration", "timestamp")


def capped(value: int) -> int:
    return min(value, MOST)


def factored(value: int, factor: float) -> int:
    return min(math.ceil(float(value) * factor), MOST)


def traversed(size: Size, factor: float = TRAVERSAL) -> int:
    return factored(size.most, factor)


def times(left: int, right: int) -> int:
    return capped(left * right)
