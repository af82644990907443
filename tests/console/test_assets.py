"""Third-party files: only those that were pinned, and none at all where no registry answers."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kvestigate.console import assets
from kvestigate.console.frame import Visit, page

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import browser_assets  # type: ignore[import-not-found] # noqa: E402

CONTENT = b"'pinned'"


def _hash(algorithm: str, data: bytes) -> str:
    return base64.b64encode(hashlib.new(algorithm, data).digest()).decode()


def _archive() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        member = tarfile.TarInfo("package/dist/x.js")
        member.size = len(CONTENT)
        tar.addfile(member, io.BytesIO(CONTENT))
    return made.getvalue()


ARCHIVE = _archive()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths that were asked for."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ARCHIVE)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/")
    yield asked
    server.shutdown()
    server.server_close()


def manifest(directory: Path, *, archive: bytes = ARCHIVE, content: bytes = CONTENT) -> Path:
    file = {"path": "dist/x.js", "name": "x.js", "sha384": _hash("sha384", content)}
    package = {"package": "@scope/x", "version": "1.2.3", "sha512": _hash("sha512", archive),
               "license": "0BSD", "files": [file]}  # fmt: skip
    path = directory / "manifest.json"
    path.write_text(json.dumps([package]))
    return path


def test_a_pinned_file_is_fetched_once(registry: list[str], tmp_path: Path) -> None:
    target = tmp_path / "there"
    for _ in range(2):
        assert browser_assets.try_to_fetch(manifest(tmp_path), target)
    assert (target / "x.js").read_bytes() == CONTENT
    assert registry == ["/@scope/x/-/x-1.2.3.tgz"]


@pytest.mark.parametrize("pinned", [{"archive": b"another"}, {"content": b"another"}])
def test_another_file_than_was_pinned_is_refused(
    registry: list[str],
    tmp_path: Path,
    pinned: dict[str, bytes],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not browser_assets.try_to_fetch(manifest(tmp_path, **pinned), tmp_path / "there")
    assert not (tmp_path / "there" / "x.js").exists()
    assert "does not have the pinned hash" in capsys.readouterr().err


def test_a_registry_that_is_away_costs_liveness_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")
    assert not browser_assets.try_to_fetch(manifest(tmp_path), tmp_path / "there")
    assert "it works without" in capsys.readouterr().err


def test_only_files_with_their_pinned_hash_are_served() -> None:
    shipped = {file.name: file.sha384 for file in assets.pinned()}
    served = assets.contents()
    assert {"console.css", "console.js", "icon.svg"} <= served.keys()
    for name in served.keys() & shipped.keys():
        assert _hash("sha384", served[name].body) == shipped[name]
    made = str(page(Visit(["a"], "a"), "", "x"))
    for asset in assets.scripts():
        assert f'src="{asset.address}"' in made
        assert asset.address.removeprefix("/static/") in served
