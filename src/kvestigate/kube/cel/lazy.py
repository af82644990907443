"""Operators that need not look at all their operands: `&&`, `||` and `?:`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvestigate.kube.cel.failures import NO_OVERLOAD, EvalError

Frame = list[Any]
Run = Callable[[Frame], Any]


def _junction(decisive: bool) -> Callable[[Run, Run], Run]:
    """One operand may decide the outcome whatever the other is, even if that fails."""

    def make(left: Run, right: Run) -> Run:
        def run(frame: Frame) -> bool:
            try:
                first = left(frame)
                if type(first) is not bool:
                    raise EvalError(NO_OVERLOAD)
            except EvalError:
                if _boolean(right(frame)) is decisive:
                    return decisive
                raise
            return decisive if first is decisive else _boolean(right(frame))

        return run

    return make


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise EvalError(NO_OVERLOAD)
    return value


def _conditional(condition: Run, first: Run, second: Run) -> Run:
    return lambda frame: first(frame) if _boolean(condition(frame)) else second(frame)


LAZY: dict[str, tuple[tuple[str, ...], str, Callable[..., Run]]] = {
    "_&&_": (("bool", "bool"), "bool", _junction(decisive=False)),
    "_||_": (("bool", "bool"), "bool", _junction(decisive=True)),
    "_?_:_": (("bool", "A", "A"), "A", _conditional),
}
"""The types of the operands and of the result, and what makes the closure."""
