"""Closures that reach into values, and that make lists and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvestigate.kube.cel.failures import NO_OVERLOAD, EvalError
from kvestigate.kube.cel.values import NOTHING, LateFields, Optional

Frame = list[Any]
Run = Callable[[Frame], Any]


def selector(operand: Run, key: str) -> Run:
    def run(frame: Frame) -> Any:
        value = operand(frame)
        if isinstance(value, dict):
            try:
                return value[key]
            except KeyError:
                raise EvalError(f"no such key: {key}") from None
        if isinstance(value, LateFields):
            return value.field(key)
        raise EvalError(NO_OVERLOAD)

    return run


def optional_selector(operand: Run, key: str) -> Run:
    def run(frame: Frame) -> Any:
        value = operand(frame)
        if isinstance(value, Optional):
            if not value.present:
                return NOTHING
            value = value.value
        if value is None:
            return NOTHING
        if not isinstance(value, dict):
            raise EvalError(NO_OVERLOAD)
        return Optional(True, value[key]) if key in value else NOTHING

    return run


def tester(operand: Run, key: str, *, null_counts: bool) -> Run:
    """has(): whether a field is there; of what has a schema, also that it is not null."""

    def run(frame: Frame) -> bool:
        value = operand(frame)
        if isinstance(value, Optional):
            value = value.value
        if not isinstance(value, dict):
            raise EvalError(NO_OVERLOAD)
        return key in value if null_counts else value.get(key) is not None

    return run


def list_maker(parts: list[Run], optional: frozenset[int]) -> Run:
    if not optional:
        return lambda frame: [part(frame) for part in parts]

    def run(frame: Frame) -> list[Any]:
        made = []
        for position, part in enumerate(parts):
            value = part(frame)
            if position in optional:
                if not value.present:
                    continue
                value = value.value
            made.append(value)
        return made

    return run


def object_maker(fields: list[tuple[str, Run, bool]], make: Callable[[dict[str, Any]], Any]) -> Run:
    def run(frame: Frame) -> Any:
        given: dict[str, Any] = {}
        for name, value, optional in fields:
            held = value(frame)
            if optional:
                if not held.present:
                    continue
                held = held.value
            given[name] = held
        return make(given)

    return run


def map_maker(entries: list[tuple[Run, Run, bool]]) -> Run:
    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, value, optional in entries:
            name, held = key(frame), value(frame)
            if isinstance(name, float | list | dict) or name is None:
                raise EvalError(f"unsupported key type: {type(name).__name__}")
            if name in made:
                raise EvalError(f"duplicate key in map: {name}")
            if optional:
                if not held.present:
                    continue
                held = held.value
            made[name] = held
        return made

    return run
