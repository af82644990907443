"""Archives of strangers: whatever they hold, nothing outside of the directory is read or written.

Each is given to the one unpacker (as the SDK, `workspace fetch`, `fanout fetch` and `volumes cp`
use it) and to the check that the gateway makes before an archive goes to a host.
"""

from __future__ import annotations

import gzip
import io
import itertools
import os
import tarfile
import tracemalloc
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.workspace.archives import Archive
from kvestigate.workspace.trees import check
from kvestigate_client.extraction import extract
from kvestigate_client.members import ArchiveRefused

FILE, DIRECTORY, HARD, LINK = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE
END = bytes(1024)
EVIL = "written by the archive"


def member(
    name: str, kind: bytes = FILE, value: str = "", size: int | None = None, **pax: str
) -> bytes:
    """One header with its content; `size` lies about its length."""
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.pax_headers = kind, 0o6777, pax
    info.linkname = value if kind in (HARD, LINK) else ""
    data = (value or EVIL).encode() if kind == FILE else b""
    info.size = len(data) if size is None else size
    return info.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % 512)


def raw(name: bytes, kind: bytes = FILE, link: bytes = b"", size: bytes = b"0" * 11) -> bytes:
    """One header with exactly these bytes in its fields."""
    block = bytearray(512)
    block[0 : len(name)] = name
    block[100:108] = b"0000777\0"
    block[124 : 124 + len(size)] = size
    block[136:148] = b"00000000000\0"
    block[156:157] = kind
    block[157 : 157 + len(link)] = link
    block[257:265] = b"ustar\x0000"
    block[148:156] = b"%06o\0 " % (256 + sum(block[:148]) + sum(block[156:]))
    return bytes(block)


def long_name(name: str, kind: bytes = tarfile.GNUTYPE_LONGNAME) -> bytes:
    data = name.encode() + b"\0"
    size = b"%011o" % len(data)
    return raw(b"././@LongLink", kind, size=size) + data + bytes(-len(data) % 512)


def pax(kind: bytes, *records: bytes, size: int | None = None) -> bytes:
    data = b"".join(records)
    written = b"%011o" % (len(data) if size is None else size)
    return raw(b"pax", kind, size=written) + data + bytes(-len(data) % 512)


def record(key: str, value: str) -> bytes:
    body = f" {key}={value}\n".encode()
    length = len(body) + 1
    while len(str(length)) + len(body) != length:
        length = len(str(length)) + len(body)
    return str(length).encode() + body


OUT = (
    "../escaped",
    "../../escaped",
    "a/../../escaped",
    "./../escaped",
    "a/./../../escaped",
    "a//..//../escaped",
    "/tmp/escaped-by-archive",
    "//tmp/escaped-by-archive",
    "/../escaped",
    "..",
    "../",
    "a/..",
    "a/../b/../../escaped",
)
TARGETS = (
    "..",
    "../",
    "../..",
    "../outside",
    "./..",
    "a/../..",
    "a/../../outside",
    "/",
    "/etc/passwd",
    "//etc",
    "",
    ".//..//outside",
)

TABLE: dict[str, bytes] = {}
for out in OUT:
    TABLE[f"name {out}"] = member(out) + END
    TABLE[f"pax name {out}"] = member("a", path=out) + END
    TABLE[f"GNU name {out}"] = long_name(out) + member("a") + END
    TABLE[f"hard link to {out}"] = member("a") + member("b", HARD, out) + END
for to in TARGETS:
    TABLE[f"link {to!r}"] = member("l", LINK, to) + END
    TABLE[f"link {to!r} below"] = member("d/l", LINK, f"../{to}".replace("//", "/")) + END
    TABLE[f"write through {to!r}"] = member("l", LINK, to) + member("l/escaped") + END
    TABLE[f"write onto {to!r}"] = member("l", LINK, to) + member("l") + END
    TABLE[f"pax link {to!r}"] = member("l", LINK, "x", linkpath=to) + END
    TABLE[f"GNU link {to!r}"] = (
        long_name(to, tarfile.GNUTYPE_LONGLINK) + member("l", LINK, "x") + END
    )
    TABLE[f"hard link to a link {to!r}"] = (
        member("l", LINK, to) + member("h", HARD, "l") + member("h/escaped") + END
    )
TABLE |= {
    "links of links": member("a", LINK, "b")
    + member("b", LINK, "c")
    + member("c", LINK, "..")
    + member("a/escaped")
    + END,
    "a link to here, then out": member("a", LINK, ".") + member("a/b", LINK, "../x") + END,
    "many links up": b"".join(
        member("/".join(["a"] * depth) + "/l", LINK, "../" * depth + "..") for depth in range(1, 9)
    )
    + END,
    # What the filter of Python 3.11.7 lets through: a link that is judged before another one
    # makes its target lead elsewhere.
    "a link that turns around": member("a/b/c", DIRECTORY)
    + member("in", LINK, "a/b/c")
    + member("out", LINK, "in/../../../..")
    + member("out/escaped")
    + END,
    "a deep name": b"".join(
        member("/".join(["d" * 200] * depth), DIRECTORY) for depth in range(1, 25)
    )
    + member("/".join(["d" * 200] * 24 + [".."] * 30 + ["escaped"]))
    + END,
    "a directory becomes a link": member("d", DIRECTORY)
    + member("d", LINK, "..")
    + member("d/escaped")
    + END,
    "a link becomes a directory": member("d", LINK, "..") + member("d", DIRECTORY) + END,
    "a file becomes a directory": member("d") + member("d/escaped") + END,
    "one file twice": member("f") + member("f") + END,
    "a file over a hard link": member("f") + member("h", HARD, "f") + member("h") + END,
    "case": member("LINK", LINK, "..") + member("link/escaped") + END,
    "unicode forms": member("e\u0301", LINK, "..") + member("\u00e9/escaped") + END,
    "a dot of another width": member("\uff0e\uff0e/escaped") + END,
    "a slash of another width": member("..\u2215escaped") + END,
    "backslashes": member("..\\..\\escaped") + END,
    "a drive": member("C:\\escaped") + END,
    "escape sequences": member("\x1b]0;pwned\x07") + END,
    "a line break": member("a\n../escaped") + END,
    "a trailing slash": raw(b"f/") + END,
    "an old directory with a link behind": raw(b"f/", b"\0") + member("f", LINK, "..") + END,
    "a null in a name": long_name("ok\0/../../escaped") + member("a") + END,
    "a null in a pax name": pax(tarfile.XHDTYPE, record("path", "ok\0/../x")) + member("a") + END,
    "a null in a link": pax(tarfile.XHDTYPE, record("linkpath", "a\0/.."))
    + member("l", LINK, "x")
    + END,
    "two pax names": pax(tarfile.XHDTYPE, record("path", "ok"), record("path", "../escaped"))
    + member("a")
    + END,
    "a pax name over a GNU name": long_name("ok")
    + pax(tarfile.XHDTYPE, record("path", "../escaped"))
    + member("a")
    + END,
    "a GNU name over a pax name": pax(tarfile.XHDTYPE, record("path", "ok"))
    + long_name("../escaped")
    + member("a")
    + END,
    "a name for all": pax(tarfile.XGLTYPE, record("path", "../escaped")) + member("a") + END,
    "a size for all": pax(tarfile.XGLTYPE, record("size", "9999")) + member("a") + END,
    "a pax size that hides a header": pax(tarfile.XHDTYPE, record("size", "0"))
    + raw(b"a", size=b"%011o" % 512)
    + raw(b"../escaped")
    + END,
    "a negative pax size": pax(tarfile.XHDTYPE, record("size", "-512")) + member("a") + END,
    "a pax size that is no number": pax(tarfile.XHDTYPE, record("size", "x")) + member("a") + END,
    "a pax record of length 0": pax(tarfile.XHDTYPE, b"0 path=x\n") + member("a") + END,
    "a pax record too long": pax(tarfile.XHDTYPE, b"999 path=x\n") + member("a") + END,
    "a pax header of nothing": pax(tarfile.XHDTYPE, record("path", "a")) + END,
    "a negative size": raw(b"a", size=b"\xff" * 12) + END,
    "a negative header size": raw(b"a", tarfile.XHDTYPE, size=b"\xff" * 12) + member("a") + END,
    "the largest size": raw(b"a", size=b"\x80" + b"\x7f" * 11) + END,
    "a link with content": raw(b"l", LINK, b"x", size=b"%011o" % 512) + member("../escaped") + END,
    "a directory with content": raw(b"d", DIRECTORY, size=b"%011o" % 512) + member("../x") + END,
    "a file longer than the archive": raw(b"f", size=b"%011o" % (1 << 20)) + END,
    "a character device": member("dev", tarfile.CHRTYPE) + END,
    "a block device": member("dev", tarfile.BLKTYPE) + END,
    "a pipe": member("pipe", tarfile.FIFOTYPE) + END,
    "writing into a pipe": member("pipe", tarfile.FIFOTYPE) + member("pipe") + END,
    "an unknown type": raw(b"x", b"Z", size=b"%011o" % 512) + bytes(512) + END,
    "a volume label": raw(b"../escaped", b"V") + END,
    "holes": raw(b"sparse", tarfile.GNUTYPE_SPARSE) + END,
    "holes by pax": pax(
        tarfile.XHDTYPE, record("GNU.sparse.major", "1"), record("GNU.sparse.name", "../escaped")
    )
    + member("a")
    + END,
    "headers of headers": raw(b"x", tarfile.XGLTYPE) * 5000 + member("a") + END,
    "long names of long names": long_name("a") * 5000 + member("a") + END,
    "a header as long as memory": raw(b"x", tarfile.XHDTYPE, size=b"%011o" % (7 << 30)) + END,
    "deep": member("/".join(["d"] * 2000)) + END,
    "a long name": member("n" * 5000) + END,
    "behind the end": member("a") + END + member("../escaped"),
    "behind half an end": member("a") + bytes(512) + member("../escaped") + END,
    "no end": member("a"),
    "half a header": member("a") + raw(b"b")[:300],
    "a wrong checksum": member("a")[:100] + b"x" + member("a")[101:] + END,
    "no bytes": b"",
    "the root is a link": member(".", LINK, "..") + member("./escaped") + END,
    "the root is a file": member("./") + END,
    "our own directory": member(".unpacking-0000000000000000/x", LINK, "../..") + END,
}


def surroundings(root: Path) -> dict[str, str | None]:
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else None
        for path in root.rglob("*")
        if not path.is_relative_to(root / "in" / "target")
    }


def contained(root: Path, target: Path, unpack: Callable[[Path], object]) -> None:
    """Whatever becomes of it: nothing around the target changes, nothing in it leads out."""
    target.mkdir(parents=True)
    (root / "outside").write_text("untouched")
    (target / "theirs").write_text("of the user")
    before = surroundings(root)
    try:
        unpack(target)
    except (ArchiveRefused, OSError):
        assert [it.name for it in target.iterdir()] == ["theirs"], "refused, but half written"
    assert surroundings(root) == before
    assert not Path("/tmp/escaped-by-archive").exists()
    assert (target / "theirs").read_text() == "of the user"
    for path in target.rglob("*"):
        leads = Path(os.path.realpath(path))
        assert leads == target or leads.is_relative_to(target)
        assert not path.exists() or path.is_file() or path.is_dir(), "neither file nor directory"
        assert not path.lstat().st_mode & 0o6022 or path.is_symlink()
        assert path.name == "theirs" or not path.is_symlink() or leads.name != "theirs"


def test_the_table_is_as_long_as_promised() -> None:
    print(f"{2 * len(TABLE)} hostile archives")
    assert len(TABLE) >= 80


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", [None, "new"], ids=["", "named"])
def test_hostile_archives_stay_inside(tmp_path: Path, zipped: bool, name: str | None) -> None:
    for number, packed in enumerate(TABLE.values()):
        data = gzip.compress(packed) if zipped else packed
        place = tmp_path / str(number)
        place.mkdir()
        unpack = partial(extract, io.BytesIO(data), name=name)
        contained(place, place / "in" / "target", unpack)


def escapes(archive: Archive) -> bool:
    """Whether a name that goes on to a host could leave the directory there."""
    return any(path.startswith("/") or ".." in path.split("/") for path in archive.tree())


def test_hostile_archives_are_refused_by_the_gateway_or_have_only_names_inside() -> None:
    out = []
    for case, data in TABLE.items():
        try:
            archive = Archive(io.BytesIO(data))
            check(archive.tree())
        except InputError:
            continue
        if escapes(archive):
            out.append(case)
        b"".join(archive.packed(archive.tree()))
    assert out == []


def test_hostile_archives_take_little_memory(tmp_path: Path) -> None:
    peaks: dict[str, int] = {}
    for number, (case, data) in enumerate(TABLE.items()):
        target = tmp_path / str(number)
        target.mkdir()
        tracemalloc.start()
        with suppress(ArchiveRefused, OSError):
            extract(io.BytesIO(data), target)
        peaks[case] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert {case: peak for case, peak in peaks.items() if peak >= 8 << 20} == {}


def test_a_bomb_is_refused_before_it_has_filled_the_disk(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    with gzip.open(bomb, "wb") as out:
        out.write(raw(b"zeros", size=b"%011o" % (300 << 20)))
        for _ in range(300):
            out.write(bytes(1 << 20))
    with bomb.open("rb") as file, pytest.raises(ArchiveRefused, match="250 times its size"):
        extract(file, tmp_path)
    with bomb.open("rb") as file, pytest.raises(InputError, match="250 times its size"):
        Archive(file)
    assert [it.name for it in tmp_path.iterdir()] == ["bomb"]


PARTS = st.lists(st.sampled_from(["d", "e", "..", ".", "", "f"]), min_size=1, max_size=4)
ENTRIES = st.tuples(
    PARTS.map("/".join), st.sampled_from([FILE, DIRECTORY, HARD, LINK]), PARTS.map("/".join)
)
counter = itertools.count()


def tar_of(entries: Iterable[tuple[str, bytes, str]]) -> bytes:
    return b"".join(member(*entry) for entry in entries) + END


@given(st.lists(ENTRIES, max_size=6), st.sampled_from([None, "new"]))
def test_no_archive_makes_anything_elsewhere(
    tmp_path_factory: pytest.TempPathFactory,
    entries: list[tuple[str, bytes, str]],
    name: str | None,
) -> None:
    root = tmp_path_factory.getbasetemp() / f"any-{next(counter)}"
    data = tar_of(entries)
    contained(root, root / "in" / "target", lambda at: extract(io.BytesIO(data), at, name=name))


@given(st.lists(ENTRIES, min_size=2, max_size=4), st.lists(ENTRIES, min_size=2, max_size=4))
def test_what_one_archive_left_does_not_help_the_next(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[str, bytes, str]],
    second: list[tuple[str, bytes, str]],
) -> None:
    root = tmp_path_factory.getbasetemp() / f"two-{next(counter)}"

    def both(target: Path) -> None:
        for entries in (first, second):
            try:
                extract(io.BytesIO(tar_of(entries)), target)
            except ArchiveRefused:
                pass

    contained(root, root / "in" / "target", both)
