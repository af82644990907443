"""The page on the architecture names files, folders and functions that exist."""

from __future__ import annotations

import ast
import re

import pytest

from tests.guards.conftest import ROOT
from tools import cycles

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\| \[`[^`]+`\]\(\.\./(src/[^)]+)\) \| `([\w.]+)` \|", PAGE, re.MULTILINE)
WALKS = PAGE.partition("## Three walks")[2].split("\n### ")[1:]
PACKAGES = sorted(
    ".".join(path.parent.relative_to(ROOT / "src").parts)
    for path in (ROOT / "src").rglob("__init__.py")
)


def test_there_are_three_walks_of_many_steps() -> None:
    assert len(WALKS) == 3
    assert all(walk.count("](../src/") > 10 for walk in WALKS)
    assert len(STEPS) == sum(walk.count("](../src/") for walk in WALKS)


@pytest.mark.parametrize(("file", "name"), STEPS, ids=str)
def test_a_step_exists(file: str, name: str) -> None:
    body = ast.parse((ROOT / file).read_bytes()).body
    for word in name.split("."):
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node.name == word
        ]
        assert found, f"{file} has no {name}"
        body = found[0].body


@pytest.mark.parametrize("path", sorted(set(re.findall(r'click \w+ "\.\./([^"]+)"', PAGE))))
def test_a_node_of_a_drawing_leads_to_a_folder(path: str) -> None:
    assert (ROOT / path).is_dir()


@pytest.mark.parametrize("package", PACKAGES)
def test_no_subpackages_import_each_other(package: str) -> None:
    imports = cycles.graph(package)
    assert cycles.both_ways(imports) == []
    assert cycles.cycle(imports) == []


def test_a_planted_cycle_is_found() -> None:
    planted = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d"}}
    assert cycles.both_ways(planted) == [("d", "e")]
    assert cycles.cycle(planted)


def test_the_plane_shows_the_way_of_a_request() -> None:
    plane = ROOT / "src" / "kvestigate" / "cluster" / "plane"
    entries = [path.name for path in plane.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 12
    assert all(f"`{name}`" in PAGE for name in entries if name != "__init__.py")
