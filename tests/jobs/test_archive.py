"""Local files on their way into a task."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from kvestigate.errors import InputError
from kvestigate.jobs.files.archive import Archive, packed
from kvestigate.jobs.tasks.model import Upload
from kvestigate.jobs.tasks.pieces import LARGEST_PIECE, MOST_PIECES, PIECE


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


def whole(made: Archive) -> bytes:
    return b"".join(made.piece(index) for index in range(made.count))


def test_each_upload_is_an_entry_and_only_files_are_taken(tree: Path) -> None:
    with packed(UPLOADS, tree) as made, tarfile.open(fileobj=io.BytesIO(whole(made))) as tar:
        found = {member.name: member for member in tar}
    assert sorted(found) == ["0", "0/link", "0/run.sh", "1"]
    assert found["0/run.sh"].mode & 0o111
    assert {member.uid for member in found.values()} == {0}


def test_equal_files_are_equal_bytes(tree: Path) -> None:
    with packed(UPLOADS, tree) as one, packed(UPLOADS, tree) as other:
        assert one.files == other.files


def test_the_pieces_are_named_by_what_is_in_them_and_fit_into_a_secret(tree: Path) -> None:
    (tree / "one").write_bytes(os.urandom(3 * PIECE))
    with packed(UPLOADS, tree) as made:
        pieces = [made.piece(index) for index in range(made.count)]
        assert [hashlib.sha256(piece).hexdigest() for piece in pieces] == list(made.files.pieces)
        assert hashlib.sha256(whole(made)).hexdigest() == made.files.digest
        assert [len(gzip.decompress(piece)) for piece in pieces[:-1]] == [PIECE] * 3
    assert len(pieces) == 4
    assert max(map(len, pieces)) < LARGEST_PIECE < 2**20 * 3 / 4


def test_a_change_in_one_place_changes_the_pieces_there_alone(tree: Path) -> None:
    content = bytearray(os.urandom(6 * PIECE))
    (tree / "one").write_bytes(content)
    with packed(UPLOADS, tree) as made:
        before = made.files.pieces
    stamp = (tree / "one").stat().st_mtime
    content[3 * PIECE] ^= 1
    (tree / "one").write_bytes(content)
    os.utime(tree / "one", (stamp, stamp))
    with packed(UPLOADS, tree) as made:
        assert len(set(made.files.pieces) - set(before)) == 1


def test_what_is_large_goes_straight_to_the_nodes(tree: Path) -> None:
    with (tree / "one").open("wb") as file:
        file.truncate(MOST_PIECES * PIECE + 1)
    with packed(UPLOADS, tree) as made:
        assert made.files.streamed
        assert made.count > MOST_PIECES


def test_what_is_not_there_is_named(tree: Path) -> None:
    absent = [Upload("absent", "/x", "workdir")]
    with (
        pytest.raises(InputError, match=r"workdir: 'absent' cannot be read"),
        packed(absent, tree),
    ):
        pass
