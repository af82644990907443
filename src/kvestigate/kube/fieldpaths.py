"""Paths of fields, as the causes of a Status name them: `spec.containers[0].image`."""

from __future__ import annotations


class Path:
    """An immutable path that costs one small object a step and becomes text only if asked."""

    __slots__ = ("_parent", "_step")

    def __init__(self, name: str = "") -> None:
        """The path of a top-level field, or of the object itself."""
        self._parent: Path | None = None
        self._step = name

    def child(self, *names: str) -> Path:
        """A field of the object at this path."""
        path = self
        for name in names:
            path = path._extend(f".{name}")
        return path

    def index(self, position: int) -> Path:
        """An element of the list at this path."""
        return self._extend(f"[{position}]")

    def key(self, name: str) -> Path:
        """An entry of the map at this path, whose keys are data: `metadata.labels[app]`."""
        return self._extend(f"[{name}]")

    def _extend(self, step: str) -> Path:
        path = Path(step)
        path._parent = self
        return path

    def __str__(self) -> str:
        steps = []
        path: Path | None = self
        while path is not None:
            steps.append(path._step)
            path = path._parent
        return "".join(reversed(steps)).removeprefix(".")

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Path) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))
