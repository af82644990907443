"""Files, directories and standard input."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from kvestigate.errors import InputError
from kvestigate.manifests.read import read


def test_a_directory_is_all_manifests_in_it_in_order(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", "c.yml", "notes.txt", "deep/d.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    flat = read([str(tmp_path)])
    assert [it.text for it in flat] == ["a.json", "b.yaml", "c.yml"]
    deep = read([str(tmp_path)], recursive=True)
    assert [it.text for it in deep] == ["a.json", "b.yaml", "c.yml", "deep/d.yaml"]


def test_a_file_given_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a")
    assert len(read([str(tmp_path / "a.yaml"), str(tmp_path)])) == 1


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: Pod")))
    assert [(it.name, it.text) for it in read(["-"])] == [("-", "kind: Pod")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.yaml", None, "cannot be read: No such file"),
        ("latin.yaml", "ä".encode("latin-1"), "not text: byte 0 is not UTF-8"),
        ("empty/notes.txt", b"", "there are no manifests in this directory"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read([str(path if path.parent == tmp_path else path.parent)])
