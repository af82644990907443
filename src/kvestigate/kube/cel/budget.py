"""What a run of an expression pays, and from what. Pure.

Units and limits are those of kube-apiserver: an expression that is asked once may cost
`PER_CALL`, and all expressions about one object together `PER_OBJECT`. What a call costs follows
from the sizes of its operands, as in kube-apiserver, but containers are counted with all that is
in them: Python looks at all of it where Go does not copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from kvestigate.kube import pauses
from kvestigate.kube.cel.failures import OutOfBudget
from kvestigate.kube.cel.values import SetList

PER_CALL = 1_000_000
PER_OBJECT = 10_000_000
ROUND = 4
"""The cost of a round of a loop, besides that of its body."""
_SCARCE = 100_000

_is_scarce: ContextVar[bool] = ContextVar("cel_scarce", default=False)


class Purse:
    """What all expressions about one object may still cost together."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _SCARCE if _is_scarce.get() else PER_OBJECT


@contextmanager
def scarce() -> Iterator[None]:
    """For work that nobody else can interrupt: purses hold less."""
    token = _is_scarce.set(True)
    try:
        yield
    finally:
        _is_scarce.reset(token)


def pay(frame: list[Any], amount: int) -> None:
    frame[0] -= amount
    if frame[0] < 0:
        raise OutOfBudget
    pauses.rest_if_due()


# -- prices of calls, given the operands and what is left -------------------------------------

Price = Callable[[tuple[Any, ...], int], int]

_CHARACTERS = 10
"""Characters of text that are looked at for one unit."""
_REGEX = 4
"""Characters of a regular expression that count as one unit."""


def weight(value: Any, most: int) -> int:
    """How much there is in a value; a number beyond `most` if it is more than that."""
    if type(value) is str or type(value) is bytes:
        return len(value) // _CHARACTERS
    if not isinstance(value, list | dict):
        return 0
    total, inside = 0, [value]
    while inside and total <= most:
        container = inside.pop()
        total += len(container)
        for each in container.values() if isinstance(container, dict) else container:
            if type(each) is str or type(each) is bytes:
                total += len(each) // _CHARACTERS
            elif isinstance(each, list | dict):
                inside.append(each)
    return total


def _all(operands: tuple[Any, ...], most: int) -> int:
    return 1 + sum([weight(operand, most) for operand in operands])


def _arguments(operands: tuple[Any, ...], most: int) -> int:
    return _all(operands[1:], most)


def _product(operands: tuple[Any, ...], most: int) -> int:
    """Each element of one is compared with each of the other."""
    cost = 1
    for operand in operands[:2]:
        cost *= 1 + weight(operand, most)
    return cost


def _squared(operands: tuple[Any, ...], most: int) -> int:
    return (1 + weight(operands[0], most)) * (1 + _length(operands[0]))


def _pairwise(operands: tuple[Any, ...], most: int) -> int:
    """Sets have no order, so that each element is looked for; other values are walked once."""
    if any(isinstance(operand, SetList) for operand in operands):
        return _product(operands, most)
    return _all(operands, most)


def _member(operands: tuple[Any, ...], most: int) -> int:
    return 1 if isinstance(operands[1], dict) else _all(operands, most)


def _matched(operands: tuple[Any, ...], most: int) -> int:
    text, regex = operands[:2]
    return (1 + _length(text) // _CHARACTERS) * (1 + _length(regex) // _REGEX)


def _replaced(operands: tuple[Any, ...], most: int) -> int:
    """What is made may be much larger than all that it is made of."""
    text, old, new = operands[:3]
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str)):
        return 1
    return 1 + (len(text) + (text.count(old) + 1) * len(new)) // _CHARACTERS


def _joined(operands: tuple[Any, ...], most: int) -> int:
    between = _length(operands[1]) if len(operands) > 1 else 0
    return _all(operands, most) + _length(operands[0]) * between // _CHARACTERS


def _ranged(operands: tuple[Any, ...], most: int) -> int:
    count = operands[0]
    return 1 + (max(count, 0) if isinstance(count, int) else 0)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | dict) else 0


FLAT = frozenset(
    (
        *("_[_]", "_[?_]", "size", "type", "dyn", "!_", "-_", "_*_", "_/_", "_%_", "_-_"),
        *("optional.of", "optional.none", "optional.ofNonZeroValue", "hasValue", "value"),
        *("or", "orValue", "first", "last"),
    )
)
"""Functions that look at a container without looking into it."""

_PRICES: dict[str, Price] = {
    **dict.fromkeys(("_==_", "_!=_", "_+_"), _pairwise),
    **dict.fromkeys(("startsWith", "endsWith"), _arguments),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), _product),
    **dict.fromkeys(("matches", "find", "findAll"), _matched),
    "@in": _member,
    "distinct": _squared,
    "replace": _replaced,
    "join": _joined,
    "lists.range": _ranged,
}


def price(name: str) -> Price | None:
    """What a call of a function costs; None: one unit, whatever its operands are."""
    return None if name in FLAT else _PRICES.get(name, _all)
