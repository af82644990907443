#!/usr/bin/env python3
"""Says whether subpackages of a package import each other both ways, or in a circle.

    tools/cycles.py [PACKAGE ...]    default: the packages that have inner layers

Every folder and every loose module directly in a package is one unit. Imports inside functions and
under TYPE_CHECKING count like any other. The exit code is 1 if there is a cycle.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
LAYERED = (
    "kvestigate",
    "kvestigate.cluster",
    "kvestigate.cluster.plane",
    "kvestigate.cluster.plane.access",
    "kvestigate.cluster.plane.admission",
    "kvestigate.cluster.plane.tenancy",
    "kvestigate.cluster.node",
    "kvestigate.jobs",
)
Graph = Mapping[str, set[str]]


def graph(package: str) -> Graph:
    """Unit -> the other units of the package that it imports."""
    root = SOURCE / package.replace(".", "/")
    modules = {_name(path): path for path in root.rglob("*.py") if path != root / "__init__.py"}
    imports: dict[str, set[str]] = defaultdict(set)
    for module, path in modules.items():
        own = _unit(module, package)
        imports[own] |= {_unit(name, package) for name in _imported(path, modules)} - {own}
    return imports


def cycle(imports: Graph) -> list[str]:
    """The units of one cycle, the first of them again at the end; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def both_ways(imports: Graph) -> list[tuple[str, str]]:
    """Pairs that import each other."""
    return [(a, b) for a in imports for b in imports[a] if a < b and a in imports.get(b, ())]


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _unit(module: str, package: str) -> str:
    return module.removeprefix(f"{package}.").partition(".")[0]


def _imported(path: Path, modules: Container[str]) -> Iterator[str]:
    for module, name in _imports(path):
        inner = f"{module}.{name}" if name else module
        if inner in modules:
            yield inner
        elif module in modules:
            yield module


@cache  # a module is asked about once for each package around it
def _imports(path: Path) -> list[tuple[str, str]]:
    """`import a.b` is `("a.b", "")`, `from a import b` is `("a", "b")`."""
    imports = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            imports += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports += [(node.module, alias.name) for alias in node.names]
    return imports


def main(packages: list[str]) -> int:
    broken = False
    for package in packages or LAYERED:
        imports = graph(package)
        pairs, circle = both_ways(imports), cycle(imports)
        print(f"{package}: {len(imports)} units, {len(pairs)} pairs that import each other")
        for pair in pairs:
            print(f"  {pair[0]} <-> {pair[1]}")
        if circle:
            print(f"  cycle: {' -> '.join(circle)}")
        broken = broken or bool(circle)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
