"""What is packed here is unpacked there, and nothing else."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from kvestigate_client import packing
from kvestigate_client.packing import pack, unpack


def tree(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    for name in ("main.py", "lib/a.py", "lib/__pycache__/a.pyc", ".git/config", "data/x.bin"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "empty").mkdir()
    return root


def test_a_directory_comes_back_as_it_was(source: Path, tmp_path: Path) -> None:
    (source / "main.py").chmod(0o755)
    (source / "link").symlink_to("main.py")
    os.link(source / "main.py", source / "same.py")
    for archive in pack(source):
        unpack(archive.archive, tmp_path / "target")
    assert tree(tmp_path / "target") == tree(source)
    assert (tmp_path / "target" / "empty").is_dir()
    assert (tmp_path / "target" / "link").is_symlink()
    assert (tmp_path / "target" / "main.py").stat().st_mode & 0o111


@pytest.mark.parametrize(
    ("excludes", "kept"),
    [
        (["__pycache__", ".git"], {"main.py", "lib/a.py", "data/x.bin"}),
        (["*.py"], {"lib/__pycache__/a.pyc", ".git/config", "data/x.bin"}),
        (["lib/a.py", "data/", ".*"], {"main.py", "lib/__pycache__/a.pyc"}),
    ],
)
def test_what_is_excluded_stays_behind(
    source: Path, tmp_path: Path, excludes: list[str], kept: set[str]
) -> None:
    for archive in pack(source, excludes):
        unpack(archive.archive, tmp_path / "target")
    assert set(tree(tmp_path / "target")) == kept


def test_a_file_alone(source: Path, tmp_path: Path) -> None:
    [archive] = pack(source / "data" / "x.bin")
    unpack(archive.archive, tmp_path / "target")
    assert tree(tmp_path / "target") == {"x.bin": "data/x.bin"}


def test_the_same_files_are_the_same_bytes(source: Path) -> None:
    assert list(pack(source)) == list(pack(source))


def test_much_is_split(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "ARCHIVE_BYTES", 24)
    archives = list(pack(source))
    assert len(archives) > 2
    assert {it.offset for it in archives} == {0}
    for archive in archives:
        unpack(archive.archive, tmp_path / "target")
    assert tree(tmp_path / "target") == tree(source)


def test_a_large_file_is_sent_in_parts(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "ARCHIVE_BYTES", 24)
    content = bytes(range(60))
    (source / "lib" / "large").write_bytes(content)
    parts = []
    for found in pack(source / "lib" / "large"):
        unpack(found.archive, tmp_path / str(found.offset))
        parts.append((tmp_path / str(found.offset) / "large").read_bytes())
    assert parts == [content[:24], content[24:48], content[48:]]
    assert sorted(it.offset for it in pack(source) if it.offset) == [24, 48]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-such"):
        list(pack(tmp_path / "no-such"))


def test_pipes_stay_behind(source: Path, tmp_path: Path) -> None:
    os.mkfifo(source / "pipe")
    for archive in pack(source):
        unpack(archive.archive, tmp_path / "target")
    assert not (tmp_path / "target" / "pipe").exists()


@pytest.mark.parametrize("name", ["../escaped", "/escaped", "a/../../escaped"])
def test_an_archive_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(name))
    try:
        unpack(target.getvalue(), tmp_path / "in" / "target")
    except tarfile.TarError:
        pass
    assert not (tmp_path / "in" / "escaped").exists()
    assert not (tmp_path / "escaped").exists()
    assert not Path("/escaped").exists()
