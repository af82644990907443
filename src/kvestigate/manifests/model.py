"""What a manifest is, and what becomes of one."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """A text with manifests."""

    name: str
    """The file's, or `-`."""
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object as its author wrote it."""

    body: dict[str, Any] = field(repr=False)
    where: str
    """`app.yaml:12`"""

    @property
    def api_version(self) -> str:
        return str(self.body["apiVersion"])

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Empty where the manifest does not say."""
        return str(self.body["metadata"].get("namespace") or "")

    @property
    def is_secret(self) -> bool:
        return (self.api_version, self.kind) == ("v1", "Secret")


class Outcome(enum.Enum):
    """What an object's manifest does to it, or would do."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    CONFLICT = "conflict"
    """Another manager owns a field that the manifest sets otherwise."""
    FAILED = "failed"
    NOT_TRIED = "not tried"
    """The server was gone, or did not know us, before it was this one's turn."""

    @property
    def good(self) -> bool:
        return self in (Outcome.CREATED, Outcome.CHANGED, Outcome.UNCHANGED)


@dataclass(frozen=True, slots=True)
class Change:
    """One field, before and after; None where it is not set."""

    path: str
    """`spec.template.spec.containers[web].image`"""
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class FieldConflict:
    path: str
    manager: str
    """Who owns the field."""


@dataclass(frozen=True, slots=True)
class Result:
    """One object of a deployment."""

    kind: str
    namespace: str
    """Empty for what is in none."""
    name: str
    where: str
    """Which manifest it is."""
    outcome: Outcome
    changes: tuple[Change, ...] = ()
    conflicts: tuple[FieldConflict, ...] = ()
    reason: str = ""
    """What the server said, or why it could not be asked."""
    exit_code: int = 0
    """Of a failure: 3 no cluster, 4 denied, 7 timeout, as of any other command."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """All objects, in the order in which they are applied."""

    applied: bool
    """False: this is what would happen."""
    objects: tuple[Result, ...]

    def count(self, outcome: Outcome) -> int:
        return sum(result.outcome is outcome for result in self.objects)

    @property
    def failed(self) -> bool:
        return any(not result.outcome.good for result in self.objects)
