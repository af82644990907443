"""Archives become files: what is kept of them, what is left out, and what was there before."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from kvestigate_client.extraction import Unpacked, extract
from kvestigate_client.members import ArchiveLimits, ArchiveRefused, Members

FILE, DIRECTORY, HARD, LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE

Entry = tuple[str, bytes, str]
"""Name, type, and the content or where a link leads."""


def archive(entries: Iterable[Entry], mode: int = 0o644, zipped: bool = False) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz" if zipped else "w") as tar:
        for name, kind, value in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.mtime, info.uid = kind, mode, 1_700_000_000, 4711
            if kind in (HARD, LINK):
                info.linkname = value
            data = value.encode() if kind == FILE else b""
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer


def made(root: Path) -> dict[str, str]:
    """All that is below: the content of files, `-> TARGET` of links, `/` of directories."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = "/" if path.is_dir() else path.read_text()
    return found


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([("hosts", FILE, "a")], {"new": "a"}),
        ([("./hosts", FILE, "a")], {"new": "a"}),
        ([("d", DIRECTORY, "")], {"new": "/"}),
        ([("d", DIRECTORY, ""), ("d/f", FILE, "a")], {"new": "/", "new/f": "a"}),
        ([("d/e/f", FILE, "a")], {"new": "/", "new/e": "/", "new/e/f": "a"}),
        ([("./", DIRECTORY, ""), ("./f", FILE, "a")], {"new": "/", "new/f": "a"}),
        ([("d/f", FILE, "a"), ("d/g", HARD, "d/f")], {"new": "/", "new/f": "a", "new/g": "a"}),
        ([("d/f", FILE, "a"), ("d/g", LINK, "f")], {"new": "/", "new/f": "a", "new/g": "-> f"}),
        (
            [("d/e/g", LINK, "../f"), ("d/f", FILE, "a")],
            {"new": "/", "new/e": "/", "new/e/g": "-> ../f", "new/f": "a"},
        ),
        ([("d/" + "n" * 200, FILE, "a")], {"new": "/", "new/" + "n" * 200: "a"}),
        ([("d/ü\udcff", FILE, "a")], {"new": "/", "new/ü\udcff": "a"}),
    ],
)
def test_trees_are_made_as_they_were(
    tmp_path: Path, entries: list[Entry], expected: dict[str, str], zipped: bool
) -> None:
    extract(archive(entries, zipped=zipped), tmp_path, name="new")
    assert made(tmp_path) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LINK, "/etc/passwd"),
        (LINK, ".."),
        (LINK, "../theirs"),
        (LINK, "e/../../x"),
        (HARD, "d/nothing"),
        (tarfile.FIFOTYPE, ""),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
    ],
)
def test_what_is_no_file_of_the_tree_is_left_out(tmp_path: Path, kind: bytes, value: str) -> None:
    (tmp_path / "theirs").touch()
    entries = [("d", DIRECTORY, ""), ("d/odd", kind, value), ("d/f", FILE, "abc")]
    assert extract(archive(entries), tmp_path) == Unpacked(("d",), 1, 3, ("d/odd",))
    assert made(tmp_path) == {"d": "/", "d/f": "abc", "theirs": ""}


def test_links_that_stay_inside_are_kept(tmp_path: Path) -> None:
    entries = [
        ("d", DIRECTORY, ""),
        ("d/file", FILE, ""),
        ("link", LINK, "d/file"),
        ("d/up", LINK, "../d/file"),
        ("same", HARD, "d/file"),
    ]
    extract(archive(entries), tmp_path)
    assert (tmp_path / "link").resolve() == tmp_path / "d" / "file"
    assert (tmp_path / "d" / "up").resolve() == tmp_path / "d" / "file"
    assert (tmp_path / "same").samefile(tmp_path / "d" / "file")


@pytest.mark.parametrize(("mode", "kept"), [(0o6777, 0o755), (0o6555, 0o755), (0, 0o600)])
def test_files_are_ours_and_give_no_rights_to_others(tmp_path: Path, mode: int, kept: int) -> None:
    extract(archive([("d/file", FILE, "")], mode), tmp_path)
    found = (tmp_path / "d" / "file").stat()
    assert (found.st_uid, found.st_mode & 0o7777) == (os.getuid(), kept)
    assert found.st_mtime == 1_700_000_000


def test_what_is_there_is_replaced_and_its_neighbours_stay(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("old")
    (tmp_path / "d" / "g").write_text("stays")
    extract(archive([("d/f", FILE, "new"), ("d/e/f", FILE, "new")]), tmp_path)
    assert made(tmp_path) == {"d": "/", "d/f": "new", "d/g": "stays", "d/e": "/", "d/e/f": "new"}


def test_a_link_that_is_there_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("untouched")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f").symlink_to("../precious")
    extract(archive([("f", FILE, "new")]), tmp_path / "in")
    assert made(tmp_path) == {"in": "/", "in/f": "new", "precious": "untouched"}


@pytest.mark.parametrize("entry", [("d/f", FILE, "new"), ("f", FILE, "new")])
def test_a_directory_takes_the_place_of_nothing_else(tmp_path: Path, entry: Entry) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "d").symlink_to("../elsewhere")
    (tmp_path / "in" / "f").mkdir()
    before = made(tmp_path)
    with pytest.raises(ArchiveRefused, match="is there already"):
        extract(archive([("ok", FILE, ""), entry]), tmp_path / "in")
    assert made(tmp_path) == before


@pytest.mark.parametrize("data", [b"", b"nonsense" * 200, b"\x1f\x8b\x08\x00 broken"])
def test_what_is_no_archive_is_told(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ArchiveRefused, match="is no tar"):
        extract(io.BytesIO(data), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("left", [0.3, 0.5, 0.9])
def test_what_is_cut_off_is_refused_as_a_whole(tmp_path: Path, zipped: bool, left: float) -> None:
    content = os.urandom(200_000).hex()
    whole = archive([("a", FILE, content), ("b", FILE, content)], zipped=zipped).getvalue()
    with pytest.raises(ArchiveRefused, match="is no tar"):
        extract(io.BytesIO(whole[: int(len(whole) * left)]), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (ArchiveLimits(entries=2), "more than 2 files"),
        (ArchiveLimits(unpacked=4), "unpacks to more than"),
        (ArchiveLimits(depth=2), "levels deep"),
        (ArchiveLimits(path=4), "longer than 4 bytes"),
    ],
)
def test_limits(tmp_path: Path, limits: ArchiveLimits, why: str) -> None:
    entries = [("a", FILE, "abc"), ("b", FILE, "abc"), ("c/d/e", FILE, "abc")]
    with pytest.raises(ArchiveRefused, match=why):
        extract(archive(entries), tmp_path, limits=limits)
    assert not list(tmp_path.iterdir())


def test_reading_ends_when_its_time_is_over() -> None:
    ticks = iter(range(1000))
    tar = archive([(str(it), FILE, "abc") for it in range(100)])
    with pytest.raises(ArchiveRefused, match="takes more than 20 seconds"):
        list(Members(tar, ArchiveLimits(seconds=20), now=lambda: float(next(ticks))))
