"""A file we write is whole, keeps its permissions, and leaves nothing behind when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvestigate.files import replace_file


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    replace_file(tmp_path / "new", b"content")
    assert (tmp_path / "new").read_bytes() == b"content"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("mode", "expected"), [(None, 0o640), (0o600, 0o600)])
def test_permissions_stay_unless_told(tmp_path: Path, mode: int | None, expected: int) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"before")
    path.chmod(0o640)
    replace_file(path, b"after", mode=mode)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"after", expected)


def test_a_link_keeps_pointing(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"before")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    replace_file(tmp_path / "link", b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"after"


def test_a_failure_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "directory", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["directory"]
