"""`kubeconfig` as users call it."""

from __future__ import annotations

import json
from pathlib import Path

from kvestigate.kubeconfigs.strategies import NAMES
from tests.cli.conftest import Invoke, Served, kubeconfig


def write(home: Path, text: str, name: str = ".kube/config") -> Path:
    path = home / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_analyze_looks_at_the_default_file(invoke: Invoke, home: Path) -> None:
    write(home, kubeconfig("https://x", user={"token": "t"}))
    done = invoke("kubeconfig", "analyze", "--fail-on", "warning")
    assert (done.code, done.err) == (0, "")
    assert "prod (current)" in done.out
    assert "no problems found" in done.out


def test_analyze_fails_on_what_it_is_told_to(invoke: Invoke, home: Path) -> None:
    path = write(home, kubeconfig("http://x", user={"token": "t"}), "mine.yaml")
    assert invoke("kubeconfig", "analyze", str(path), "--fail-on", "critical").code == 0
    done = invoke("kubeconfig", "analyze", str(path), "--fail-on", "warning", "-o", "json")
    assert done.code == 1
    (finding,) = json.loads(done.out)["findings"]
    assert (finding["rule"], finding["severity"]) == ("plain-http", "warning")


def test_analyze_without_any_file(invoke: Invoke) -> None:
    done = invoke("kubeconfig", "analyze")
    assert done.code == 3
    assert "no kubeconfig file exists" in done.err


def test_verify_names_who_cannot_be_reached(invoke: Invoke, home: Path, served: Served) -> None:
    works = str(served.data / "admin.kubeconfig")
    done = invoke("kubeconfig", "verify", "--kubeconfig", works)
    assert done.code == 0
    assert "works" in done.out

    write(home, kubeconfig("https://127.0.0.1:9"))
    failed = invoke("kubeconfig", "verify")
    assert failed.code == 3
    assert "unreachable" in failed.out
    assert "prod: " in failed.out


def test_convert_shows_then_writes(invoke: Invoke, home: Path) -> None:
    path = write(home, kubeconfig("https://x", user={"token": "hunter2"}))
    seen = invoke("kubeconfig", "convert", "rename", "--to", "live")
    assert seen.code == 0
    assert "context prod -> live" in seen.out
    assert "nothing was written; --apply writes the files" in seen.out
    assert "live" not in path.read_text()

    done = invoke("kubeconfig", "convert", "rename", "--to", "live", "--apply")
    assert done.code == 0
    assert "hunter2" not in done.out
    assert "live" in path.read_text()

    (backup,) = path.parent.glob("*.bak")
    again = invoke("kubeconfig", "diff", str(backup), str(path), "-o", "json")
    assert [it["what"] for it in json.loads(again.out)["entries"]] == ["renamed", "changed"]


def test_diff_of_the_same(invoke: Invoke, home: Path) -> None:
    path = str(write(home, kubeconfig("https://x")))
    assert invoke("kubeconfig", "diff", path, path).out == "no differences\n"


def test_the_command_knows_all_strategies(invoke: Invoke) -> None:
    refused = invoke("kubeconfig", "convert", "shuffle")
    assert refused.code == 2
    assert all(repr(name) in refused.err for name in NAMES)
