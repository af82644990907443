"""Archives from strangers: what they make, and what they cannot."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import KvestigateError
from kvestigate.fanout.unpack import Unpacked, unpack

FILE, DIRECTORY, HARD, LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE

Entry = tuple[str, bytes, str]
"""Name, type, and the content or where a link leads."""


def archive(entries: Iterable[Entry], mode: int = 0o644) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, value in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, mode
            if kind in (HARD, LINK):
                info.linkname = value
            data = value.encode() if kind == FILE else b""
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    buffer.seek(0)
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
    ],
)
def test_trees_are_made_as_they_were(
    tmp_path: Path, entries: list[Entry], expected: dict[str, str]
) -> None:
    unpack(archive(entries), tmp_path / "new")
    assert made(tmp_path) == expected


@pytest.mark.parametrize(
    "entries",
    [
        [("../f", FILE, "a")],
        [("/etc/f", FILE, "a")],
        [("d/../../f", FILE, "a")],
        [("d/f", FILE, "a"), ("other/f", FILE, "a")],
        [("d/f", FILE, "a"), ("d/f", FILE, "b")],
        [("d/f", FILE, "a"), ("d/f/g", FILE, "b")],
        [("d/f", FILE, "a"), ("d/g", HARD, "../secret")],
        [("d/l", LINK, "e"), ("d/l/f", FILE, "a")],
        [("d/e", DIRECTORY, ""), ("d/l", LINK, "e"), ("d/l", FILE, "a")],
        [("d/l", LINK, "/etc")],
        [],
    ],
)
def test_archives_that_reach_out_are_refused(tmp_path: Path, entries: list[Entry]) -> None:
    (tmp_path / "secret").write_text("untouched")
    (tmp_path / "inner").mkdir()
    # The last two are not refused as such: they have nothing that could be made.
    with pytest.raises(KvestigateError):
        unpack(archive(entries), tmp_path / "inner" / "new")
    outside = {name: text for name, text in made(tmp_path).items() if not name.startswith("inner/")}
    assert outside == {"inner": "/", "secret": "untouched"}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LINK, "/etc/passwd"),
        (LINK, ".."),
        (LINK, "e/../../x"),
        (HARD, "d/nothing"),
        (tarfile.FIFOTYPE, ""),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
    ],
)
def test_what_is_no_file_of_the_tree_is_left_out(tmp_path: Path, kind: bytes, value: str) -> None:
    entries = [("d", DIRECTORY, ""), ("d/odd", kind, value), ("d/f", FILE, "abc")]
    assert unpack(archive(entries), tmp_path / "new") == Unpacked(1, 3, ("d/odd",))
    assert made(tmp_path) == {"new": "/", "new/f": "abc"}


def test_modes_are_kept_without_the_bits_that_give_rights(tmp_path: Path) -> None:
    unpack(archive([("d/f", FILE, "")], mode=0o6555), tmp_path / "new")
    assert (tmp_path / "new/f").stat().st_mode & 0o7777 == 0o755


def test_what_is_no_archive_is_told(tmp_path: Path) -> None:
    with pytest.raises(KvestigateError, match="did not send a tar archive"):
        unpack(io.BytesIO(b"nonsense" * 200), tmp_path / "new")


NAMES = st.lists(st.sampled_from(["d", "e", "..", ".", "", "f"]), min_size=1, max_size=4)
ENTRIES = st.tuples(
    NAMES.map("/".join), st.sampled_from([FILE, DIRECTORY, HARD, LINK]), NAMES.map("/".join)
)


@given(st.lists(ENTRIES, max_size=6))
def test_no_archive_makes_anything_elsewhere(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry]
) -> None:
    root = tmp_path_factory.mktemp("unpack")
    new = root / "new"
    try:
        unpack(archive(entries), new)
    except KvestigateError:
        pass
    assert [it.name for it in root.iterdir()] in ([], ["new"])
    for path in new.rglob("*"):
        leads = Path(os.path.realpath(path))
        assert leads == new or leads.is_relative_to(new)
