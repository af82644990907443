"""Regular expressions that users write: in schemas of custom resources and in CEL. Pure.

Kubernetes means RE2 (Go's `regexp`), so RE2 itself runs them. That is a matter of safety as well:
Python's `re` backtracks, and a tenant's `^(a+)+$` would stop the server for minutes. RE2's time
grows with the length of the text times the size of the compiled pattern. That product is still
too much for a large pattern on a long text, so it has a limit here, which kube-apiserver lacks.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

import re2

from kvestigate.errors import InputError

_LENGTH_MAX = 8192
"""Characters of a pattern: a longer one takes too long to compile."""
_MEMORY_MAX = 4 << 20
"""Bytes of a compiled pattern. Compiling one of this size takes about 70 ms."""
_STEPS_MAX = 100_000_000
"""Size of the compiled pattern times length of the text: at most about 0.2 s."""

_GO_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""RE2's errors in the words of Go's."""
_SINGLE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
r"""`\C` matches half a character in RE2; Go has no such escape."""


class InvalidPattern(ValueError):
    """The text is not a regular expression. The message is what Go's parser says."""


class TooCostly(ValueError):
    """The pattern is too large for a text of this length."""


class Pattern:
    """A compiled pattern. Matches may be anywhere in a text."""

    def __init__(self, source: str) -> None:
        if len(source) > _LENGTH_MAX:
            raise InvalidPattern(f"expression too large: more than {_LENGTH_MAX} characters")
        if _SINGLE_BYTE.search(source):
            raise InvalidPattern(r"invalid escape sequence: `\C`")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY_MAX
        try:
            self._regexp = re2.compile(source, options)
        except re2.error as error:
            raise InvalidPattern(_in_words_of_go(error)) from None
        self._size: int = self._regexp.programsize

    def matches(self, text: str) -> bool:
        self._afford(len(text))
        return self._regexp.search(text) is not None

    def find(self, text: str) -> str:
        """The first match; empty if there is none."""
        self._afford(len(text))
        match = self._regexp.search(text)
        return match[0] if match else ""

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """The first matches, or all if the limit is negative."""
        self._afford(len(text))
        collected: list[str] = []
        for match in islice(self._regexp.finditer(text), None if limit < 0 else limit):
            collected.append(match[0])
            # Each match may have been found only after a look at the whole rest of the text.
            self._afford(len(text) * len(collected))
        return collected

    def _afford(self, length: int) -> None:
        if self._size * length > _STEPS_MAX:
            raise TooCostly(
                f"a text of {length} characters is too long for a pattern of {self._size} steps"
            )


_SEARCHED_MAX = 200
"""Characters of a pattern that somebody looks for in a log."""


def check_pattern(source: str, where: str) -> None:
    """InputError unless a log can be searched for a regular expression; an empty one is none."""
    if len(source) > _SEARCHED_MAX:
        raise InputError(f"is longer than {_SEARCHED_MAX} characters", where=where)
    try:
        compiled(source)
    except InvalidPattern as error:
        raise InputError(
            f"{source!r} is not a regular expression: {error}",
            where=where,
            hint="write one such as error|failed",
        ) from None


@lru_cache(maxsize=256)
def compiled(source: str) -> Pattern:
    """Raises `InvalidPattern`."""
    return Pattern(source)


def _in_words_of_go(error: re2.error) -> str:
    """RE2 says `missing ): (` where Go says "missing closing ): `(`"."""
    problem, _, part = error.args[0].decode(errors="replace").partition(": ")
    if problem.startswith("pattern too large"):
        return "expression too large"
    reason = _GO_WORDS.get(problem, problem)
    return f"{reason}: `{part}`" if part else reason
