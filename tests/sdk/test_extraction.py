"""Archives of strangers: what they hold stays where it was put, with every Python."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from kvestigate_client.extraction import extract


@pytest.fixture(params=["filters", "none"], autouse=True)
def _python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the filters of Python 3.11.4 and later, and without."""
    if request.param == "none":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    elif not hasattr(tarfile, "data_filter"):
        pytest.skip("this Python has no filters")


def member(name: str, type_: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.uid = type_, link, 0o6777, 4711
    return info


def unpack(target: Path, *members: tarfile.TarInfo) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for each in members:
            tar.addfile(each)
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        extract(tar, target)


ESCAPES = {
    "dots": [member("../escaped")],
    "dots inside": [member("a/../../escaped")],
    "link out": [member("a", tarfile.SYMTYPE, "..")],
    "absolute link": [member("a", tarfile.SYMTYPE, "/etc")],
    "deep link out": [member("a/b", tarfile.SYMTYPE, "../../escaped")],
    "hard link out": [member("a", tarfile.LNKTYPE, "../secret")],
    "through a link": [
        member("a", tarfile.SYMTYPE, "."),
        member("a/b", tarfile.SYMTYPE, "../escaped"),
    ],
    "device": [member("a", tarfile.CHRTYPE)],
    "pipe": [member("a", tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("name", ESCAPES)
def test_what_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(tarfile.TarError):
        unpack(target, *ESCAPES[name])
    assert not (tmp_path / "escaped").exists()
    assert not list(target.glob("*/escaped"))


def test_an_absolute_path_is_put_inside(tmp_path: Path) -> None:
    unpack(tmp_path, member("/of/root"))
    assert (tmp_path / "of" / "root").is_file()


def test_links_that_stay_inside_are_kept(tmp_path: Path) -> None:
    unpack(
        tmp_path,
        member("d", tarfile.DIRTYPE),
        member("d/file"),
        member("link", tarfile.SYMTYPE, "d/file"),
        member("d/up", tarfile.SYMTYPE, "../d/file"),
        member("same", tarfile.LNKTYPE, "d/file"),
    )
    assert (tmp_path / "link").resolve() == tmp_path / "d" / "file"
    assert (tmp_path / "d" / "up").resolve() == tmp_path / "d" / "file"
    assert (tmp_path / "same").samefile(tmp_path / "d" / "file")


def test_files_are_ours_and_others_cannot_write_them(tmp_path: Path) -> None:
    unpack(tmp_path, member("d", tarfile.DIRTYPE), member("d/file"))
    found = (tmp_path / "d" / "file").stat()
    assert (found.st_uid, found.st_mode & 0o7777) == (os.getuid(), 0o755)
