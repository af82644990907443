"""What says of itself that it is pure takes values and returns values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

FORBIDDEN = frozenset(
    {"asyncio", "httptools", "selectors", "socket", "sqlite3", "ssl", "subprocess", "threading"}
)
"""Modules that reach outside the process, or wait."""

HARMLESS = frozenset({"AF_INET", "AF_INET6", "inet_ntop", "inet_pton"})
"""What they have of mere values and conversions."""

CLOCKS = frozenset({"now", "utcnow", "today", "time", "monotonic", "perf_counter"})
"""Of `datetime`, `date` and `time`: pure code is told the time."""


def pure_modules() -> Iterator[Path]:
    for path in sorted(SOURCE.rglob("*.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if re.search(r"\bPure\.", said):
            yield path


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
    assert len(list(pure_modules())) > 200


@pytest.mark.parametrize("path", list(pure_modules()), ids=lambda it: str(it.relative_to(SOURCE)))
def test_what_is_called_pure_is(path: Path) -> None:
    assert list(impurities(path)) == []
