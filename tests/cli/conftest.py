"""Running the real command line in process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from kvestigate.cli.main import KVESTIGATE_PROGRAM, run


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


Invoke = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and working directory: nothing of the developer's own is in reach."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Call a program with arguments: `invoke("debug", "context")`."""

    def call(*args: str, root: click.Command = KVESTIGATE_PROGRAM) -> Outcome:
        code = run(root, args)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
