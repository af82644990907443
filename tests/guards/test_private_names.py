"""The source uses only public names of its dependencies: private ones change in any release."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

OWN = frozenset({"kvestigate", "kvestigate_client"})

DOCUMENTED = frozenset(
    {
        *("_asdict", "_fields", "_make", "_replace"),  # of named tuples
        "_exit",  # of os
        *("_get_running_loop", "_set_running_loop"),  # of asyncio, "for event loop implementers"
    }
)
"""Public in spite of their names."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in DOCUMENTED | {"_"}


@cache
def sources() -> dict[str, ast.Module]:
    """Every file of the source, by its path in there."""
    return {
        str(path.relative_to(SOURCE)): ast.parse(path.read_bytes()) for path in SOURCE.rglob("*.py")
    }


@cache
def own_names() -> frozenset[str]:
    """Every private name that the source itself defines."""
    return frozenset(name for tree in sources().values() for name in defined(tree))


def defined(tree: ast.AST) -> Iterator[str]:
    """Private names of functions, classes and variables, and of attributes of `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr if _is_name(node.value, "self") else ""
        else:
            continue
        if is_private(name):
            yield name


def foreign_names(tree: ast.Module, own: frozenset[str]) -> list[str]:
    """Private names that a module uses and that are not `own`, with their lines."""
    foreign = set(_imported_from_others(tree))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if _is_foreign(alias.name)]
            found += [(node.lineno, name) for name in names if _has_private_part(name)]
        elif isinstance(node, ast.ImportFrom) and _is_foreign(node.module or ""):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(node.lineno, name) for name in names if _has_private_part(name)]
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            of_foreign = isinstance(root := _root(node), ast.Name) and root.id in foreign
            if of_foreign or node.attr not in own:
                found.append((node.lineno, ast.unparse(node)))
    return [f"line {line}: {name}" for line, name in sorted(found)]


def _imported_from_others(tree: ast.AST) -> Iterator[str]:
    """The names by which a module knows other projects' modules, classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_foreign(alias.name):
                    yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and _is_foreign(node.module or ""):
            for alias in node.names:
                yield alias.asname or alias.name


def _is_foreign(module: str) -> bool:
    return module.partition(".")[0] not in OWN | {"__future__"}


def _has_private_part(name: str) -> bool:
    return any(map(is_private, name.split(".")))


def _root(node: ast.expr) -> ast.expr:
    """`a` of `a.b.c`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def test_the_source_uses_only_public_names_of_others() -> None:
    found = {path: foreign_names(tree, own_names()) for path, tree in sources().items()}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from ssl import _create_unverified_context", "ssl._create_unverified_context"),
        ("import asyncio._a", "asyncio._a"),
        ("from click._compat import isatty", "click._compat.isatty"),
        ("import asyncio\nasyncio._enter_task(loop, task)", "asyncio._enter_task"),
        ("import asyncio as a\na.events._running_loop", "a.events._running_loop"),
        ("from OpenSSL import SSL\nSSL._lib.SSL_read", "SSL._lib"),
        ("from click import Context\nContext._depth", "Context._depth"),
        ("from kvestigate.aio import x\nx.future._asyncio_blocking = True", "x.future._asyncio"),
        ("self._connection._raise_ssl_error(1)", "self._connection._raise_ssl_error"),
    ],
)
def test_a_private_name_of_others_is_found(source: str, name: str) -> None:
    (found,) = foreign_names(ast.parse(source), frozenset({"_connection"}))
    assert name in found


@pytest.mark.parametrize(
    "source",
    [
        "self._connection.close()",
        "import os\nos._exit(1)",
        "from kvestigate.kube import _words",
        "point._replace(x=1)",
        "self.__class__.__name__",
    ],
)
def test_own_and_documented_names_are_fine(source: str) -> None:
    assert foreign_names(ast.parse(source), frozenset({"_connection"})) == []
