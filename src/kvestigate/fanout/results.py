"""The result of a fan-out on each target. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kvestigate.fanout.targets import Target, UnreachableTarget


class Outcome(enum.Enum):
    PLANNED = "planned"
    """Nothing was done because of --dry-run or a missing confirmation."""
    OK = "ok"
    FAILED = "failed"
    """The command ended with an exit code other than 0."""
    TIMEOUT = "timeout"
    """The command took longer than the timeout and was stopped."""
    UNREACHABLE = "unreachable"
    ERROR = "error"
    """The command could not be run, or the file not be transferred."""

    @property
    def good(self) -> bool:
        return self in (Outcome.PLANNED, Outcome.OK)


@dataclass(frozen=True, slots=True)
class TargetAddress:
    """The target of a result."""

    name: str
    """The name of the node or the pod."""
    node: str
    namespace: str = ""
    pod: str = ""
    container: str = ""

    @classmethod
    def of(cls, target: Target | UnreachableTarget) -> TargetAddress:
        if isinstance(target, UnreachableTarget):
            return cls(target.name, target.node)
        return cls(target.name, target.node, target.namespace, target.pod, target.container)


class TargetResult(Protocol):
    """What the results of commands and of transfers have in common."""

    @property
    def target(self) -> TargetAddress: ...

    @property
    def outcome(self) -> Outcome: ...

    @property
    def seconds(self) -> float: ...

    @property
    def error(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Ran:
    """A command on one target."""

    target: TargetAddress
    outcome: Outcome
    argv: tuple[str, ...] = ()
    """The command line in the container, with its wrapper."""
    exit_code: int | None = None
    """None if the command did not end by itself."""
    seconds: float = 0.0
    stdout: str = ""
    stderr: str = ""
    truncated: bool = False
    """Whether output was dropped because of its length."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Transferred:
    """A file or tree from or to one target."""

    target: TargetAddress
    outcome: Outcome
    path: str = ""
    """The path of the copy."""
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0
    skipped: tuple[str, ...] = ()
    """Devices, other special files, and links out of the tree."""
    error: str = ""


def failures(results: Sequence[TargetResult]) -> list[TargetResult]:
    return [result for result in results if not result.outcome.good]


def summary(results: Sequence[TargetResult]) -> str:
    """`7 of 8 ok; failed: node-03`"""
    failed = failures(results)
    text = f"{len(results) - len(failed)} of {len(results)} ok"
    if not failed:
        return text
    by_outcome: dict[str, list[str]] = {}
    for result in failed:
        by_outcome.setdefault(result.outcome.value, []).append(result.target.name)
    parts = (f"{outcome}: {', '.join(names)}" for outcome, names in by_outcome.items())
    return "; ".join([text, *parts])


def progress_line(result: TargetResult) -> str:
    """`✓ node-08 exit=0 1.3s`"""
    mark = "✓" if result.outcome.good else "✗"
    ending = result.outcome.value
    if isinstance(result, Ran) and result.exit_code is not None:
        ending = f"exit={result.exit_code}"
    error = f" {result.error}" if result.error else ""
    return f"{mark} {result.target.name} {ending} {result.seconds:.1f}s{error}"


def cut(text: str, lines: int) -> str:
    """The first `lines` of `text`, and the number of lines that were dropped."""
    whole = text.rstrip("\n").split("\n")
    left = len(whole) - lines
    if left <= 0:
        return "\n".join(whole)
    more = f"... {left} more {'line' if left == 1 else 'lines'}; --full shows them"
    return "\n".join([*whole[:lines], more])
