"""Local files on their way into a task."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from kvestigate.errors import InputError
from kvestigate.jobs import archive
from kvestigate.jobs.archive import Archive, pack
from kvestigate.jobs.model import Upload


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "code" / ".git").mkdir(parents=True)
    (tmp_path / "code" / ".git" / "config").write_text("secret")
    (tmp_path / "code" / "run.sh").write_text("echo\n")
    (tmp_path / "code" / "run.sh").chmod(0o755)
    (tmp_path / "code" / "link").symlink_to("run.sh")
    os.mkfifo(tmp_path / "code" / "pipe")
    (tmp_path / "one").write_text("1")
    return tmp_path


UPLOADS = [Upload("code", "~/sky_workdir", "workdir"), Upload("one", "/one", "file_mounts./one")]


def members(made: Archive) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(made.content)) as tar:
        return {member.name: member for member in tar}


def test_each_upload_is_an_entry_and_only_files_are_taken(tree: Path) -> None:
    found = members(pack(UPLOADS, tree))
    assert sorted(found) == ["0", "0/link", "0/run.sh", "1"]
    assert found["0/run.sh"].mode & 0o111
    assert {member.uid for member in found.values()} == {0}


def test_equal_files_are_equal_bytes(tree: Path) -> None:
    assert pack(UPLOADS, tree).digest == pack(UPLOADS, tree).digest


def test_the_parts_are_the_whole_and_fit_into_a_secret() -> None:
    made = Archive(bytes(range(256)) * 10_000)
    assert b"".join(made.parts) == made.content
    assert len(made.parts) == 4
    assert all(len(part) * 4 / 3 < 2**20 for part in made.parts)


def test_what_is_not_there_is_named(tree: Path) -> None:
    with pytest.raises(InputError, match=r"workdir: 'absent' cannot be read"):
        pack([Upload("absent", "/x", "workdir")], tree)


def test_too_much_is_refused_with_the_way_out(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LARGEST", 100_000)
    (tree / "one").write_bytes(os.urandom(200_000))
    with pytest.raises(InputError) as caught:
        pack(UPLOADS, tree)
    assert "volume" in (caught.value.hint or "")
