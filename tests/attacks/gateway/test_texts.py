"""Texts of workspaces whose owner wants the gateway to take too much, or to wait for ever."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from kvestigate.errors import RequestEntityTooLarge
from kvestigate.workspace import fetch, texts
from kvestigate.workspace.shell import assigned
from kvestigate.workspace.spec import WorkspaceSpec
from kvestigate.workspace.texts import LARGEST_TEXT, EditOptions, edited

SPEC = WorkspaceSpec("agent-a", "node-1")
SOON = 20.0
"""Seconds; who opens a FIFO as `cat` does waits for ever."""


def test_an_edit_that_makes_too_much_is_refused_before_it_is_made() -> None:
    """Each byte of a file replaced by the longest text would be 64 GiB of the gateway's memory."""
    options = EditOptions(SPEC, "code/a", old="x", new="y" * LARGEST_TEXT, every=True)
    tracemalloc.start()
    try:
        with pytest.raises(RequestEntityTooLarge):
            edited(b"x" * 400, options)
        assert tracemalloc.get_traced_memory()[1] < 8 * LARGEST_TEXT
    finally:
        tracemalloc.stop()


def test_an_edit_may_fill_a_file_and_no_more() -> None:
    options = EditOptions(SPEC, "code/a", old="x", new="yy", every=True)
    half = LARGEST_TEXT // 2
    assert edited(b"x" * half, options) == (b"y" * LARGEST_TEXT, half)
    with pytest.raises(RequestEntityTooLarge):
        edited(b"x" * (half + 1), options)


def racing(tmp_path: Path, program: str, target: str) -> dict[str, str]:
    """A run that puts a FIFO in place of a file as soon as the script has called the program."""
    programs = tmp_path / "bin"
    programs.mkdir()
    trap = programs / program
    trap.write_text(
        f'#!/bin/sh\nsaid=$({shutil.which(program)} "$@") || exit\nfile={target}\n'
        'rm -f "$file"; mkfifo "$file"; echo "$said"\n'
    )
    trap.chmod(0o755)
    return {"PATH": f"{programs}:/usr/bin:/bin"}


def test_reading_waits_for_no_fifo(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "a").write_text("abc")
    script = assigned(
        workspace=str(workspace), wanted="a", offset="0", limit="9", listing="", most="9"
    )
    done = subprocess.run(
        ["sh", "-euc", script + fetch._PART_OF],
        env=racing(tmp_path, "stat", str(workspace / "a")),
        capture_output=True, timeout=SOON, check=False,
    )  # fmt: skip
    assert done.stdout == b"f 3\n"


@pytest.mark.parametrize(
    ("program", "target"),
    [("mktemp", '"$said"'), ("mktemp", "a"), ("chmod", "a")],
    ids=["the file that is written", "the file that is compared", "the file that is replaced"],
)
def test_writing_waits_for_no_fifo(tmp_path: Path, program: str, target: str) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "a").write_text("abc")
    before = hashlib.sha256(b"abc").hexdigest()
    done = subprocess.run(
        ["sh", "-euc", texts._WRITE, "write", "a", "600", before],
        cwd=workspace, env=racing(tmp_path, program, target), input=b"new",
        capture_output=True, timeout=SOON, check=False,
    )  # fmt: skip
    assert [each.name for each in workspace.iterdir()] == ["a"]
    if program == "chmod":
        assert (done.returncode, (workspace / "a").read_text()) == (0, "new")
    else:
        assert done.returncode != 0


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, LARGEST_TEXT])
def test_all_of_a_text_arrives(tmp_path: Path, size: int) -> None:
    done = subprocess.run(
        ["sh", "-euc", texts._WRITE, "write", "a", "600", ""],
        cwd=tmp_path, input=b"x" * size, capture_output=True, check=True,
    )  # fmt: skip
    assert done.stderr == b""
    assert (tmp_path / "a").stat().st_size == size
