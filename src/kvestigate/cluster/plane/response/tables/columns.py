"""What a column of a Table is, and how its cells are read. Pure."""

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

Read = Callable[[Object, float], Any]
"""The cell of an object at a time (Unix seconds)."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    """Empty: clients get the cells, but no definition of the column."""
    read: Read
    type: str = "string"
    """`string`, `integer`, `boolean` or `date`"""
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


class Columns:
    """How the objects of one kind become rows."""

    def __init__(
        self,
        *columns: Column,
        conditions: Callable[[Object], list[dict[str, str]]] | None = None,
        empty_rows: Any = (),
    ) -> None:
        self.columns = columns
        self.conditions = conditions
        """What a row says of its object besides the cells: that a pod has completed."""
        self.empty_rows = empty_rows
        """The rows of an empty list: an empty one, or null."""

    def definitions(self) -> list[dict[str, Any]]:
        return [column.definition() for column in self.columns if column.name]

    def cells(self, obj: Object, now: float) -> list[Any]:
        return [column.read(obj, now) for column in self.columns]


def column(
    name: str,
    source: str | Callable[[Object], Any],
    default: Any = "",
    *,
    type: str = "string",
    format: str = "",
    wide: bool = False,
) -> Column:
    """A column whose cells are at a path (`spec.type`) of the objects, or computed from them.

    `default` is the cell of an object that has nothing at the path.
    """
    if isinstance(source, str):
        read = _reader(source.split("."), default)
    else:
        compute = source

        def read(obj: Object, now: float) -> Any:
            return compute(obj)

    return Column(name, read, type, format, int(wide))


def integer(name: str, source: str | Callable[[Object], Any]) -> Column:
    return column(name, source, 0, type="integer")


def flag(name: str, source: str, default: bool = False) -> Column:
    return column(name, source, default, type="boolean")


def _reader(steps: list[str], default: Any) -> Read:
    def read(obj: Object, now: float) -> Any:
        value = at(obj, *steps)
        return default if value is None else value

    return read


def at(obj: Any, *steps: str) -> Any:
    """The value at a path; None if there is none."""
    for step in steps:
        if not obj:
            return None
        obj = obj.get(step)
    return obj


def since(text: str | None, now: float) -> str:
    """How long ago a timestamp was."""
    return human.age(now - datetime.fromisoformat(text).timestamp()) if text else UNKNOWN


def _age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


NAME = column("Name", "metadata.name", format="name")
AGE = Column("Age", _age)


def size(*paths: str) -> Callable[[Object], int]:
    """How many elements the lists or maps at these paths have together."""
    return lambda obj: sum(len(at(obj, *path.split(".")) or ()) for path in paths)


def filled(path: str, default: str) -> Callable[[Object], Any]:
    """What is at a path, or the default if it is missing or empty."""
    return lambda obj: at(obj, *path.split(".")) or default


def joined(path: str, default: str = "") -> Callable[[Object], str]:
    """The strings of a list, separated by commas."""
    return lambda obj: ",".join(at(obj, *path.split(".")) or ()) or default


def reference(path: str, *fields: str, default: str = NONE) -> Callable[[Object], str]:
    """What a reference at a path names, its fields separated by slashes: `Role/view`."""

    def read(obj: Object) -> str:
        referred = at(obj, *path.split("."))
        return "/".join(referred.get(field, "") for field in fields) if referred else default

    return read


def first(texts: list[str], count: int) -> str:
    """The first few texts, and how many more there are."""
    shown = ",".join(texts[:count])
    return f"{shown} + {len(texts) - count} more..." if len(texts) > count else shown


def pairs(labels: Mapping[str, str] | None) -> str:
    """`app=web,tier=db`"""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def containers(path: str, *, wide: bool = True) -> tuple[Column, Column]:
    """The names and images of the containers of the pod template at a path."""

    def listed(field: str) -> Callable[[Object], str]:
        steps = [*path.split("."), "spec", "containers"]
        return lambda obj: ",".join(each.get(field, "") for each in at(obj, *steps) or ())

    return (
        column("Containers", listed("name"), wide=wide),
        column("Images", listed("image"), wide=wide),
    )


def condition(obj: Object, type_: str) -> str:
    """The status of a condition; empty if there is none of that type."""
    for present in _conditions(obj):
        if present.get("type") == type_:
            status: str = present.get("status", "")
            return status
    return ""


def condition_types(obj: Object) -> set[str]:
    return {present.get("type", "") for present in _conditions(obj)}


def _conditions(obj: Object) -> Iterable[Object]:
    return at(obj, "status", "conditions") or ()
