"""A copy of the sources with everything that the page on extending adds."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text()
FILE = re.compile(r"^```python\n# (src/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINES = re.compile(r"^```text\n(src/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with everything that the page adds."""
    home = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "src", home / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for path, content in FILE.findall(PAGE):
        assert not (home / path).exists()
        (home / path).write_text(content)
    for path, change in LINES.findall(PAGE):
        (home / path).write_text(_changed((home / path).read_text(), change, path))
    return home


def _changed(text: str, change: str, path: str) -> str:
    """Each `-` line is replaced by the `+` lines below it."""
    for before, after in re.findall(r"^-(.*)\n((?:\+.*\n)+)", change, re.MULTILINE):
        assert text.count(f"{before}\n") == 1, f"{path} has not one line {before!r}"
        lines = "".join(f"{line[1:]}\n" for line in after.splitlines())
        text = text.replace(f"{before}\n", lines)
    return text
