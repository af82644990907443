"""Rules that every source file keeps, checked on the files themselves."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES = 600
NAMELESS = {"utils", "util", "common", "misc", "helpers", "helper"}
SLEEPS = {("time", "sleep"), ("asyncio", "sleep"), ("anyio", "sleep")}
# Root's home and a checkout right below / are words that a source may well hold.
MACHINE_PATHS = [str(path) for path in (ROOT, Path.home()) if len(path.parts) > 2]
TEXT = {"", ".py", ".md", ".toml", ".yaml", ".yml", ".json", ".txt", ".lock", ".mod", ".go"}


def _tracked() -> list[Path]:
    """Every file that is in the repository or about to be, without ignored ones."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


FILES = _tracked()
PYTHON = [path for path in FILES if path.suffix == ".py"]
TESTS = [path for path in PYTHON if path.is_relative_to(ROOT / "tests")]
PACKAGES = [path for path in PYTHON if path.name == "__init__.py"]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), _name(path))


def test_there_are_files_to_guard() -> None:
    assert len(PYTHON) > 20
    assert TESTS
    assert PACKAGES


def test_no_file_is_too_long() -> None:
    lines = {_name(path): path.read_bytes().count(b"\n") for path in PYTHON}
    long = {name: count for name, count in lines.items() if count > LINES}
    assert not long, f"split these by concept: {long}"


def test_every_module_is_named_for_what_it_holds() -> None:
    nameless = [
        _name(path) for path in PYTHON if {path.stem, *path.relative_to(ROOT).parts} & NAMELESS
    ]
    assert not nameless


def test_every_package_says_what_it_is() -> None:
    mute = [_name(path) for path in PACKAGES if not ast.get_docstring(_parsed(path))]
    assert not mute, f"these have no docstring: {mute}"


def _fixed_sleeps(tree: ast.AST) -> Iterator[int]:
    """Line numbers of `sleep(CONSTANT)`; `asyncio.sleep(0)` is a yield, not a wait."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (node.module, alias.name) in SLEEPS
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(module), attr=name),
                args=[ast.Constant(value), *_],
            ) if (module, name) in SLEEPS and value:
                yield node.lineno
            case ast.Call(func=ast.Name(name), args=[ast.Constant(value), *_]) if (
                name in imported and value
            ):
                yield node.lineno


def test_no_test_sleeps_a_fixed_time() -> None:
    # Most files have not even the word, and to parse all of them takes seconds.
    suspects = [path for path in TESTS if b"sleep" in path.read_bytes()]
    found = [f"{_name(path)}:{line}" for path in suspects for line in _fixed_sleeps(_parsed(path))]
    assert not found, f"wait for what should happen instead: {found}"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import time\ntime.sleep(1)", [2]),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(0.1)", [3]),
        ("from asyncio import sleep as nap\nnap(2)", [2]),
        ("import asyncio\nasyncio.sleep(0)", []),
        ("import asyncio\nasyncio.sleep(delay)", []),
        ("clock.sleep(3)", []),
    ],
)
def test_the_sleep_guard_sees_sleeps(source: str, lines: list[int]) -> None:
    assert list(_fixed_sleeps(ast.parse(source))) == lines


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    found = [
        f"{_name(path)}: {machine}"
        for path in FILES
        if path.suffix in TEXT
        for machine in MACHINE_PATHS
        if machine in path.read_text(errors="replace")
    ]
    assert not found


def test_the_license_of_the_metadata_is_in_the_repository() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert metadata["license"] == "Apache-2.0"
    assert (
        "Apache License\n                           Version 2.0" in (ROOT / "LICENSE").read_text()
    )
    notice = (ROOT / "NOTICE").read_text()
    tables = [path for path in FILES if path.suffix == ".json" and "src" in path.parts]
    assert tables
    for table in tables:
        assert table.name in notice, f"NOTICE does not say where {table.name} comes from"
    assert metadata["license-files"] == ["LICENSE", "NOTICE"]
