"""Files are whole or not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvestigate.cli.files import keep_json, write_whole
from kvestigate.errors import InputError


def test_json_is_kept_where_asked(tmp_path: Path) -> None:
    keep_json(tmp_path / "result.json", {"a": 1})
    assert json.loads((tmp_path / "result.json").read_bytes()) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_nothing_is_kept_when_not_asked(tmp_path: Path) -> None:
    keep_json(None, {"a": 1})
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_and_the_old_one_stays_whole_for_its_readers(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_whole(path, b"old")
    with path.open("rb") as reader:
        write_whole(path, b"new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"


def test_directories_on_the_way_are_made(tmp_path: Path) -> None:
    write_whole(tmp_path / "2026" / "05" / "f", b"kept")
    assert (tmp_path / "2026" / "05" / "f").read_bytes() == b"kept"


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file/f: cannot be written: Not a directory"):
        write_whole(tmp_path / "file" / "f", b"")


def test_a_directory_in_the_way_leaves_no_litter(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match=r"taken: cannot be written: Is a directory"):
        write_whole(tmp_path / "taken", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
