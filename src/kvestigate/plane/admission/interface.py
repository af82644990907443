"""What an admission rule is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from kvestigate.plane.kinds.kind import Kind, Object, Scene
from kvestigate.plane.request import Asked
from kvestigate.plane.store.model import Mutation


@dataclass(slots=True)
class Write:
    """A write that has been defaulted and is about to be validated and stored."""

    operation: str
    """CREATE, UPDATE or DELETE"""
    kind: Kind
    new: Object
    """Rules may change it; on DELETE it is the object as stored."""
    old: Object | None
    asked: Asked
    scene: Scene
    warnings: list[str]
    extra: list[Mutation] = field(default_factory=list)
    """Mutations to commit together with the write: a quota's new usage."""


class Rule(Protocol):
    def admit(self, write: Write) -> None:
        """Change the object, raise to refuse it, or do nothing."""
