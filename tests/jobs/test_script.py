"""What a node's shell does with the files of its task."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kvestigate.jobs.files.archive import packed
from kvestigate.jobs.tasks.model import Task, Upload
from kvestigate.jobs.tasks.script import FILES, script


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A tree to upload."""
    (tmp_path / "code" / "package").mkdir(parents=True)
    (tmp_path / "code" / ".hidden").write_text("hidden\n")
    (tmp_path / "code" / "package" / "main").write_text("new\n")
    (tmp_path / "code" / "package" / "main").chmod(0o755)
    (tmp_path / "code" / "link").symlink_to("package/main")
    return tmp_path


def place(base: Path, *uploads: Upload) -> None:
    """Do what a node does before it runs the task."""
    parts = base / "parts"
    parts.mkdir(exist_ok=True)
    with packed(uploads, base) as archive:
        for index in range(archive.count):
            (parts / f"part-{index:06}").write_bytes(archive.piece(index))
        text = script(Task(run="true", uploads=uploads), (), archive.files)
    ran = subprocess.run(
        ["sh", "-c", text.replace(FILES, str(parts))], capture_output=True, check=False, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def listing(target: Path) -> list[str]:
    return sorted(str(each.relative_to(target)) for each in target.rglob("*"))


EVERYTHING = [".hidden", "link", "package", "package/main"]


def test_a_tree_is_there_as_it_was(code: Path) -> None:
    target = code / "there"
    place(code, Upload("code", str(target), "workdir"))
    assert listing(target) == EVERYTHING
    assert (target / "package" / "main").stat().st_mode & 0o111
    assert (target / "link").readlink() == Path("package/main")


def test_a_tree_joins_what_is_there(code: Path) -> None:
    target = code / "there"
    (target / "package").mkdir(parents=True)
    (target / "package" / "main").write_text("old\n")
    (target / "package" / "own").write_text("own\n")
    place(code, Upload("code", str(target), "workdir"))
    assert listing(target) == [*EVERYTHING, "package/own"]
    assert (target / "link").read_text() == "new\n"


@pytest.mark.parametrize(
    ("source", "name"), [("code", "package/main"), ("code/package/main", "main")]
)
def test_who_reads_a_file_meanwhile_has_all_of_the_old_one(
    code: Path, source: str, name: str
) -> None:
    """Another node may, where nodes share a directory."""
    target = code / "there"
    (target / name).parent.mkdir(parents=True)
    (target / name).write_text("old\n")
    upload = Upload(source, str(target if source == "code" else target / name), "workdir")
    with (target / name).open() as reader:
        place(code, upload)
        assert reader.read() == "old\n"
    assert (target / name).read_text() == "new\n"
