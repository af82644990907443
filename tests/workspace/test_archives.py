"""Files on their way into a workspace: what is taken, and what a tar of it holds."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kvestigate.errors import InputError
from kvestigate.workspace import archives
from kvestigate.workspace.archives import Archive, Directory, Material
from kvestigate.workspace.trees import Kind, check
from kvestigate.workspace.uploads import Upload


def tree(base: Path) -> Path:
    (base / "src" / "deep").mkdir(parents=True)
    (base / "src" / "deep" / "f").write_text("deep")
    (base / "src" / "run").write_text("#!/bin/sh\n")
    (base / "src" / "run").chmod(0o755)
    (base / "src" / "link").symlink_to("deep/f")
    (base / "src" / "__pycache__").mkdir()
    (base / "src" / "__pycache__" / "x.pyc").touch()
    os.utime(base / "src" / "deep" / "f", (1_700_000_000.7, 1_700_000_000.7))
    return base / "src"


def unpacked(material: Material, *paths: str) -> dict[str, tuple[str, bytes | str]]:
    file = io.BytesIO(b"".join(material.packed(paths)))
    found: dict[str, tuple[str, bytes | str]] = {}
    with tarfile.open(fileobj=file) as tar:
        for member in tar:
            assert (member.uid, member.gid, member.uname) == (0, 0, "")
            assert member.mtime == int(member.mtime)
            content = None if member.issym() else tar.extractfile(member)
            told: bytes | str = content.read() if content else member.linkname
            found[member.name] = (oct(member.mode & 0o777), told)
    return found


def test_a_directory_is_taken_without_what_is_excluded(tmp_path: Path) -> None:
    found = Directory(tree(tmp_path), ["__pycache__"]).tree()
    assert {path: entry.kind.name for path, entry in found.items()} == {
        "deep": "DIRECTORY",
        "deep/f": "FILE",
        "run": "FILE",
        "link": "LINK",
    }
    assert (found["deep/f"].size, found["deep/f"].modified) == (4, 1_700_000_000)
    assert (found["run"].executable, found["deep/f"].executable) == (True, False)
    assert found["link"].target == "deep/f"


def test_what_is_packed_is_what_was_asked_for(tmp_path: Path) -> None:
    files = Directory(tree(tmp_path))
    assert unpacked(files, "deep/f", "link", "run") == {
        "deep/f": (oct(0o644), b"deep"),
        "link": (oct(0o777), "deep/f"),
        "run": (oct(0o755), b"#!/bin/sh\n"),
    }


def test_a_single_file_keeps_its_name(tmp_path: Path) -> None:
    (tmp_path / "chunk.jsonl").write_text("{}")
    files = Directory(tmp_path / "chunk.jsonl")
    assert set(files.tree()) == {"chunk.jsonl"}
    assert unpacked(files, "chunk.jsonl")["chunk.jsonl"][1] == b"{}"


def test_what_is_no_file_stays_behind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert Directory(tmp_path).tree() == {}


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: cannot be read"):
        Directory(tmp_path / "nowhere")


def packed(base: Path, *, mode: str, prefix: str) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as tar:  # type: ignore[call-overload] # any mode
        tar.add(base, arcname=prefix)
    return file


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("prefix", [".", "./"])
def test_an_archive_is_the_same_tree(tmp_path: Path, mode: str, prefix: str) -> None:
    base = tree(tmp_path)
    archive = Archive(packed(base, mode=mode, prefix=prefix))
    assert archive.tree() == Directory(base).tree()
    check(archive.tree())
    assert unpacked(archive, "deep/f", "link") == unpacked(Directory(base), "deep/f", "link")
    kept = Archive(packed(base, mode=mode, prefix=prefix), ["*.pyc", "link"]).tree()
    assert set(kept) == {"deep", "deep/f", "run", "__pycache__"}


@pytest.mark.parametrize("size", [1 << 10, 1 << 20], ids=["in memory", "on disk"])
def test_an_upload_is_read_as_an_archive(tmp_path: Path, size: int) -> None:
    (tmp_path / "a").write_bytes(os.urandom(size))
    with closing(Upload(packed(tmp_path, mode="w:gz", prefix=".").getvalue())) as upload:
        archive = Archive(upload.opened())
        assert unpacked(archive, "a")["a"][1] == (tmp_path / "a").read_bytes()
        assert b"".join(archive.content("a")) == (tmp_path / "a").read_bytes()


def test_hard_links_are_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("same")
    os.link(tmp_path / "a", tmp_path / "b")
    archive = Archive(packed(tmp_path, mode="w", prefix="."))
    assert {path: entry.size for path, entry in archive.tree().items()} == {"a": 4, "b": 4}
    assert {told for _, told in unpacked(archive, "a", "b").values()} == {b"same"}
    assert {it.kind for it in Directory(tmp_path).tree().values()} == {Kind.FILE}


@pytest.mark.parametrize("name", ["/etc/cron.d/x", "../../x", "a/../../x"])
def test_an_archive_that_leads_elsewhere_is_refused(name: str) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(InputError, match="leads out of the directory"):
        check(Archive(file).tree())


@pytest.mark.parametrize("data", [b"", b"no tar at all", b"\x1f\x8b\x08\x00 broken"])
def test_what_is_no_archive_is_named(data: bytes) -> None:
    with pytest.raises(InputError, match="archive: is no tar"):
        Archive(io.BytesIO(data))


def zipped(*headers: tarfile.TarInfo) -> io.BytesIO:
    file = io.BytesIO()
    with gzip.GzipFile(fileobj=file, mode="wb") as out:
        for header in headers:
            out.write(header.tobuf(tarfile.GNU_FORMAT))
        out.write(bytes(4 << 20))
    return file


def described(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info


class Sparse(tarfile.TarInfo):
    """A file with holes, of which a map follows that does not end."""

    def tobuf(self, *_: Any) -> bytes:
        head = bytearray(super().tobuf(tarfile.GNU_FORMAT))
        head[482] = 1
        head[148:156] = b"%06o\0 " % (256 + sum(head[:148]) + sum(head[156:]))
        more = (b"00000000001\0" * 42 + b"\1").ljust(tarfile.BLOCKSIZE, b"\0")
        return bytes(head) + more * 2000


SPARSE = Sparse("x")
SPARSE.type = tarfile.GNUTYPE_SPARSE


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ([described("x", size=65 << 30)], "unpacks to more than 64.0 GiB"),
        ([described("x", tarfile.XHDTYPE, 2 << 20)], "headers of more than"),
        ([described("x", tarfile.GNUTYPE_LONGNAME, 8 << 30)], "headers of more than"),
        ([SPARSE], "is no tar"),
        ([described("x", tarfile.XGLTYPE)] * 5000, "headers of more than"),
        ([described("a", tarfile.LNKTYPE)], "hard link to no file"),
    ],
    ids=["large", "long header", "long name", "holes", "headers of headers", "link to nothing"],
)
def test_a_small_archive_cannot_take_all_memory(headers: list[tarfile.TarInfo], why: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=why):
            Archive(zipped(*headers))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_an_archive_of_too_many_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_MOST_SENT", 100)  # as many as we mean take seconds
    tar = zipped(*(described(f"{it}") for it in range(101)))
    with pytest.raises(InputError, match="archive: has more than 100 files"):
        Archive(tar)


def test_a_tar_is_read_in_pieces(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(64 << 20)
    tar = packed(tmp_path, mode="w:gz", prefix=".")
    tracemalloc.start()
    try:
        assert sum(map(len, Archive(tar).packed(["big"]))) > 64 << 20
        assert sum(map(len, Directory(tmp_path).packed(["big"]))) > 64 << 20
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(os.urandom(1 << 20))
    tar = io.BytesIO(packed(tmp_path, mode="w:gz", prefix=".").getvalue()[: 1 << 19])
    with pytest.raises(InputError, match=r"archive: is no tar"):
        Archive(tar)


def test_a_file_that_shrinks_on_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(1 << 20))
    pieces = Directory(tmp_path).packed(["big"])
    next(pieces)
    os.truncate(tmp_path / "big", 1 << 10)
    with pytest.raises(InputError, match="big: is shorter"):
        list(pieces)
