"""Conditions in a status: set, found, removed, with transition times kept right. Pure."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kvestigate.kube.views.meta import Condition

C = TypeVar("C", bound=Condition)


def find(conditions: tuple[C, ...], type: str) -> C | None:
    for condition in conditions:
        if condition.type == type:
            return condition
    return None


def is_true(conditions: tuple[C, ...], type: str) -> bool:
    condition = find(conditions, type)
    return condition is not None and condition.status == "True"


def without(conditions: tuple[C, ...], type: str) -> tuple[C, ...]:
    return tuple(condition for condition in conditions if condition.type != type)


def put(conditions: tuple[C, ...], new: C) -> tuple[C, ...]:
    """The condition in place of its predecessor.

    An unchanged status and reason leave the old one as it is; an unchanged status keeps its
    transition time.
    """
    old = find(conditions, new.type)
    if old is not None:
        if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
            return conditions
        if old.status == new.status:
            new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return (*without(conditions, new.type), new)
