"""The parts of a description: facts and tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from kvestigate.kube.decode import decode
from kvestigate.kube.views.meta import Condition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Parts = tuple[list[tuple[str, str]], list[Section]]
"""Facts and sections; empty sections are not shown."""


def seen_as(body: dict[str, Any], type: type[T]) -> T:
    return decode(msgspec.json.encode(body), type)


def pairs(title: str, values: dict[str, str]) -> Section:
    return Section(title, ("name", "value"), tuple(sorted(values.items())))


def conditions(items: Iterable[Condition]) -> Section:
    rows = tuple(
        (condition.type, condition.status, condition.reason, condition.message)
        for condition in items
    )
    return Section("Conditions", ("type", "status", "reason", "message"), rows)
