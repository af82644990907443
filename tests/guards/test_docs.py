"""What the pages show is what happens.

A block fenced as `console` is run: each line after `$ ` by a shell, in an empty directory
with an empty home, and the lines below it are its output, stderr included. A line `...`
stands for any lines. A block fenced as `console cluster` needs a cluster and is not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```(\S.*)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")

FENCES = {"console", "console cluster", "text", "python", "yaml", "json", "bash", "toml"} | {
    "mermaid"
}


class Step(NamedTuple):
    page: str
    command: str
    output: str


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def steps() -> Iterator[Step]:
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                yield Step(_name(page), command, output)


@pytest.mark.parametrize("step", list(steps()), ids=lambda step: f"{step.page}: {step.command}")
def test_a_transcript_is_real(step: Step, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", step.command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env={
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "COLUMNS": "100",
        },
        check=False,
    )
    pattern = "".join(
        r"(?:.*\n)*?" if line == "...\n" else re.escape(line)
        for line in step.output.splitlines(keepends=True)
    )
    assert re.fullmatch(pattern, done.stdout), f"expected:\n{step.output}\ngot:\n{done.stdout}"


def test_there_are_transcripts() -> None:
    assert any(step.page == "README.md" for step in steps())


def test_fences_are_of_known_kinds() -> None:
    kinds = {_name(page): set(FENCE.findall(page.read_text(encoding="utf-8"))) for page in PAGES}
    assert {name: found - FENCES for name, found in kinds.items() if found - FENCES} == {}


def test_links_lead_somewhere() -> None:
    assert [
        f"{_name(page)}: {target}"
        for page in PAGES
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ] == []


def test_the_index_leads_to_every_page() -> None:
    docs = ROOT / "docs"
    linked = set(LINK.findall((docs / "index.md").read_text(encoding="utf-8")))
    pages = {page.name for page in docs.glob("*.md")} - {"index.md"}
    assert pages - linked == set()
