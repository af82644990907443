"""What a column of a Table is, and the cells that many kinds have. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.render import human

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"

Cells = list[Any]
MakeCells = Callable[[Object, float], Cells]
"""The cells of an object at a time (Unix seconds), one for each column."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str = "string"
    """`string`, `integer` or `date`"""
    format: str = ""
    """`name` for the column that names the object"""
    priority: int = 0
    """0 is shown always, 1 only when asked for wide output."""
    description: str = ""

    def definition(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Columns:
    """How the objects of one kind become rows."""

    columns: tuple[Column, ...]
    cells: MakeCells
    conditions: Callable[[Object], list[dict[str, str]]] | None = None
    """What a row says of its object besides the cells: that a pod has completed."""
    empty_rows: Any = ()
    """The rows of an empty list: an empty one, or null."""


NAME = Column("Name", format="name")
AGE = Column("Age")


def strings(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


def wide(*names: str) -> tuple[Column, ...]:
    """Columns for wide output only."""
    return tuple(Column(name, priority=1) for name in names)


def since(text: str | None, now: float) -> str:
    """How long ago a timestamp was."""
    return human.age(now - datetime.fromisoformat(text).timestamp()) if text else UNKNOWN


def age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def pairs(labels: Mapping[str, str] | None) -> str:
    """`app=web,tier=db`"""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def container_names(containers: Iterable[Object] | None) -> str:
    return ",".join(container.get("name", "") for container in containers or ())


def container_images(containers: Iterable[Object] | None) -> str:
    return ",".join(container.get("image", "") for container in containers or ())


def condition(obj: Object, type_: str) -> str:
    """The status of a condition; empty if there is none of that type."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each.get("type") == type_:
            status: str = each.get("status", "")
            return status
    return ""
