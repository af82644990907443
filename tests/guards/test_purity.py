"""What says of itself that it is pure takes values and returns values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"

FORBIDDEN = frozenset(
    {"asyncio", "httptools", "selectors", "socket", "sqlite3", "ssl", "subprocess", "threading"}
)
"""Modules that reach outside the process, or wait."""

HARMLESS = frozenset({"AF_INET", "AF_INET6", "inet_ntop", "inet_pton"})
"""What they have of mere values and conversions."""

CLOCKS = frozenset({"now", "utcnow", "today", "time", "monotonic", "perf_counter"})
"""Of `datetime`, `date` and `time`: pure code is told the time."""


@cache
def pure_modules() -> tuple[Path, ...]:
    return tuple(path for path in sorted(SOURCE.rglob("*.py")) if _says_so(path.read_bytes()))


def _says_so(source: bytes) -> bool:
    # Most have not even the word, and to parse all of them takes seconds.
    said = ast.get_docstring(ast.parse(source)) if b"Pure." in source else None
    return re.search(r"\bPure\.", said or "") is not None


def impurities(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.split(".")[0] in FORBIDDEN)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN:
            yield from {each.name for each in node.names} - HARMLESS
        elif isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield f"line {node.lineno} waits"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            of_clock = isinstance(owner, ast.Name) and owner.id in ("datetime", "date", "time")
            if of_clock and node.func.attr in CLOCKS:
                yield f"line {node.lineno} asks for the time"


def test_many_modules_are_pure() -> None:
    assert len(pure_modules()) > 200


def test_what_is_called_pure_is() -> None:
    found = {str(path.relative_to(SOURCE)): [*impurities(path)] for path in pure_modules()}
    assert {name: why for name, why in found.items() if why} == {}
