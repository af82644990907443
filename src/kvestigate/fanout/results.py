"""What became of a fan-out, target by target. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kvestigate.fanout.targets import Target, Unreachable


class Outcome(enum.Enum):
    PLANNED = "planned"
    """Nothing was done, as asked."""
    OK = "ok"
    FAILED = "failed"
    """The command said so, by its exit code."""
    TIMEOUT = "timeout"
    """It took too long and was ended."""
    UNREACHABLE = "unreachable"
    ERROR = "error"
    """The command could not be run, or the file not be transferred."""

    @property
    def good(self) -> bool:
        return self in (Outcome.PLANNED, Outcome.OK)


@dataclass(frozen=True, slots=True)
class Place:
    """The target of a result."""

    name: str
    """Of the node or the pod."""
    node: str
    namespace: str = ""
    pod: str = ""
    container: str = ""

    @classmethod
    def of(cls, target: Target | Unreachable) -> Place:
        if isinstance(target, Unreachable):
            return cls(target.name, target.node)
        return cls(target.name, target.node, target.namespace, target.pod, target.container)


class Told(Protocol):
    """What every result tells, whatever was done."""

    @property
    def target(self) -> Place: ...

    @property
    def outcome(self) -> Outcome: ...

    @property
    def seconds(self) -> float: ...

    @property
    def error(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Ran:
    """A command on one target."""

    target: Place
    outcome: Outcome
    argv: tuple[str, ...] = ()
    """What the container was asked to run."""
    exit_code: int | None = None
    """None if it has not ended by itself."""
    seconds: float = 0.0
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    """Whether there was more output than was kept."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Transferred:
    """A file or tree from or to one target."""

    target: Place
    outcome: Outcome
    path: str = ""
    """Where it is now."""
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0
    skipped: tuple[str, ...] = ()
    """Devices, links that lead elsewhere, and other things that are no files."""
    error: str = ""


def failures(results: Sequence[Told]) -> list[Told]:
    return [it for it in results if not it.outcome.good]


def summary(results: Sequence[Told]) -> str:
    """`7 of 8 ok; failed: node-03`"""
    failed = failures(results)
    text = f"{len(results) - len(failed)} of {len(results)} ok"
    if not failed:
        return text
    by_outcome: dict[str, list[str]] = {}
    for it in failed:
        by_outcome.setdefault(it.outcome.value, []).append(it.target.name)
    parts = (f"{outcome}: {', '.join(names)}" for outcome, names in by_outcome.items())
    return "; ".join([text, *parts])


def progress_line(result: Told) -> str:
    """`✓ node-08 exit=0 1.3s`"""
    mark = "✓" if result.outcome.good else "✗"
    said = result.outcome.value
    if isinstance(result, Ran) and result.exit_code is not None:
        said = f"exit={result.exit_code}"
    why = f" {result.error}" if result.error else ""
    return f"{mark} {result.target.name} {said} {result.seconds:.1f}s{why}"


def cut(text: str, lines: int) -> str:
    """The first `lines` of `text`, and how many were left out."""
    whole = text.rstrip("\n").split("\n")
    left = len(whole) - lines
    if left <= 0:
        return "\n".join(whole)
    more = f"... {left} more {'line' if left == 1 else 'lines'}; --full shows them"
    return "\n".join([*whole[:lines], more])
