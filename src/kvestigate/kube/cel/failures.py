"""What can be wrong with an expression, before and while it runs."""

from __future__ import annotations

from dataclasses import dataclass

_LONGEST = 32_768
"""Characters of a message, after which no further issue is told."""


@dataclass(frozen=True, slots=True, order=True)
class Issue:
    """A mistake in an expression."""

    at: int
    """The offset of the character that it is told of."""
    text: str

    def shown(self, source: str) -> str:
        """With the line it is in, and a caret below the character."""
        line = source.count("\n", 0, self.at)
        column = self.at - (source.rfind("\n", 0, self.at) + 1)
        lines = source.split("\n")
        if not source:  # nothing to point at
            return f"ERROR: <input>:1:0: {self.text}"
        return (
            f"ERROR: <input>:{line + 1}:{column + 1}: {self.text}\n"
            f" | {lines[line]}\n | {'.' * column}^"
        )


class CompileError(Exception):
    """An expression that cannot be run."""

    constant = False
    """Whether it is a part without variables that has no value."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.issues = sorted(issues, key=lambda issue: issue.at)
        shown: list[str] = []
        for issue in self.issues:  # each quotes its line, which may be long
            shown.append(issue.shown(source))
            if sum(map(len, shown)) > _LONGEST:
                break
        if left_out := len(self.issues) - len(shown):
            shown.append(f"... and {left_out} more errors")
        super().__init__("\n".join(shown)[: 4 * _LONGEST])


class ConstantError(CompileError):
    """A part of an expression that would fail whatever the variables are."""

    constant = True

    def __init__(self, why: str) -> None:
        Exception.__init__(self, why)
        self.issues = []


class EvalError(Exception):
    """An expression that has no value for the values it was given."""


NO_OVERLOAD = "no such overload"


class OutOfBudget(Exception):
    """An expression took more steps than it may; nothing in it can make up for that."""
