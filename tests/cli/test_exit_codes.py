"""Every command x what can go wrong with a server: the exit codes are the documented ones."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kvestigate.cli.main import KVESTIGATE_PROGRAM
from kvestigate.cli.tree import is_group, walk
from kvestigate.errors import (
    EXIT_DENIED,
    EXIT_NO_CLUSTER,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_TIMEOUT,
)
from kvestigate.http.message import Request, Response
from tests.cli.conftest import Invoke, Loopback, Served, answering, kubeconfig

NO_SERVER = {
    "audit diff", "report list", "app render", "collect from-file", "fanout manifest",
    "scenario list", "scenario show", "completion", "kubeconfig analyze", "kubeconfig convert",
    "kubeconfig diff", "status", "up", "demo", "down", "app list", "app status",
}  # fmt: skip
"""Commands that ask no Kubernetes API server."""
SERVERS = {
    "auth login", "auth logout", "auth token", "auth whoami", "jobs serve", "plane serve",
    "cybernet call", "cybernet emit-helper", "cybernet hash-token", "cybernet init",
    "cybernet mcp-server", "cybernet serve", "cybernet status", "cybernet token create",
    "cybernet token list", "cybernet token revoke", "plane kubeconfig",
    "plane kubelet-certificate", "collect watch", "jobs attach", "jobs exec", "ui",
}  # fmt: skip
"""Servers, their clients and streams without an end; tests of their own try them."""


@dataclass(frozen=True, slots=True)
class Row:
    command: str
    """With arguments; all names in it are unknown to the server."""
    unknown: int = EXIT_NOT_FOUND
    """The exit code where the server works and has nothing."""


MANIFEST = "cm.yaml"
MEANT = "--apply --i-understand-this-modifies-cluster"
APPS = Path(__file__).parents[2] / "examples" / "apps"
ROWS = (
    Row("audit", EXIT_OK),
    Row("report run nodes", EXIT_OK),
    Row("namespaces", EXIT_OK),
    Row("pods", EXIT_OK),
    Row("pods -n nowhere"),
    Row("describe pod/x"),
    Row("why pod/x"),
    Row("logs x"),
    Row("exec x -- true"),
    Row("plan --cpu 1", 1),
    Row("node clear x"),
    Row("node cordon x"),
    Row("node drain x"),
    Row("node uncordon x"),
    Row("evict -n nowhere"),
    Row("evict --node x"),
    Row("scale x 1"),
    Row("optimize analyze --live", EXIT_OK),
    Row("optimize plan --live", EXIT_OK),
    Row("optimize apply --live", EXIT_OK),
    Row("optimize probe-gpu --live"),
    Row("optimize health", EXIT_OK),
    Row("optimize waste", EXIT_OK),
    Row("optimize watch --keep looks.jsonl --looks 1", EXIT_OK),
    Row("fanout targets --target nodes"),
    Row("fanout targets --target pods -n default"),
    Row("fanout targets --target deployment --deployment x -n default"),
    Row("fanout exec --target nodes --dry-run -- true"),
    Row("fanout fetch /x out --target nodes"),
    Row("fanout push cm.yaml /x --target nodes"),
    Row(f"deploy {MANIFEST}", EXIT_OK),
    Row("delete pod/x"),
    Row("app diff app.yaml", EXIT_OK),
    Row("app down app.yaml", EXIT_OK),
    Row("app plan app.yaml", EXIT_OK),
    Row("app up app.yaml", EXIT_OK),
    Row("jobs cancel abc12345"),
    Row("jobs endpoint abc12345"),
    Row("jobs history", EXIT_OK),
    Row("jobs list", EXIT_OK),
    Row("jobs logs abc12345"),
    Row("jobs queue", EXIT_OK),
    Row("jobs status abc12345"),
    Row("jobs stop abc12345"),
    Row("jobs submit task.yaml --detach", EXIT_OK),
    Row("jobs why abc12345"),
    Row("volumes cp cm.yaml x:/"),
    Row("volumes create new 1Gi", EXIT_OK),
    Row("volumes delete x --force"),
    Row("volumes list", EXIT_OK),
    Row("volumes ls x"),
    Row("volumes resize x 2Gi"),
    Row("volumes status x"),
    Row("workspace apply --config ws.yaml"),
    Row("workspace cordon x"),
    Row("workspace create --config ws.yaml"),
    Row("workspace destroy --config ws.yaml"),
    Row("workspace diff --config ws.yaml"),
    Row("workspace export ws --node x"),
    Row("workspace fetch a out --config ws.yaml"),
    Row("workspace gpus --node x"),
    Row("workspace kill t --config ws.yaml"),
    Row("workspace logs t --config ws.yaml"),
    Row("workspace ps --config ws.yaml"),
    Row("workspace run --config ws.yaml --tag t -- true"),
    Row("workspace status --node x"),
    Row("workspace sync code --config ws.yaml"),
    Row("workspace edit code/a --old x --new y --config ws.yaml"),
    Row("workspace get-text a --config ws.yaml"),
    Row("workspace list-files --config ws.yaml"),
    Row("workspace put-text code/a --text x --config ws.yaml"),
    Row("workspace uncordon x"),
    Row(f"plane checkpoint x {MEANT}"),
    Row(f"plane create new {MEANT}", EXIT_OK),
    Row(f"plane delete x {MEANT}"),
    Row("plane diff x checkpoint:start"),
    Row("plane events x"),
    Row(f"plane fork x {MEANT}"),
    Row("plane list", EXIT_OK),
    Row(f"plane restore x --checkpoint c {MEANT}"),
    Row("plane snapshot x"),
    Row(f"plane step x {MEANT}"),
    Row(f"fleet create x --replicas 0 {MEANT}", EXIT_OK),
    Row(f"fleet delete gone {MEANT}"),
    Row(f"fleet scale gone --replicas 2 {MEANT}"),
    Row("fleet status gone"),
    Row("kubeconfig verify --timeout 200ms", EXIT_OK),
    Row("debug context", EXIT_OK),
    Row("debug api", EXIT_OK),
    Row("debug timing", EXIT_OK),
    Row("debug exec-url x"),
)


@pytest.fixture(scope="module")
def dead() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


FORBIDDEN = {
    "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
    "message": "no", "code": 403,
}  # fmt: skip


@pytest.fixture(scope="module")
def denying() -> Iterator[str]:
    server = Loopback(answering(403, FORBIDDEN))
    yield server.url
    server.close()


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    async def handle(request: Request) -> Response:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    server = Loopback(handle)
    yield server.url
    server.close()


@pytest.fixture
def files(home: Path) -> Path:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    (home / MANIFEST).write_text(json.dumps(body))
    workspace = {"name": "ws", "node": "x", "storage": {"mode": "disk"}}
    (home / "ws.yaml").write_text(json.dumps({"workspace": workspace}))
    shutil.copytree(APPS, home, dirs_exist_ok=True)
    (home / "batch.yaml").rename(home / "app.yaml")
    (home / "task.yaml").write_text("run: echo hello\n")
    return home


def told(invoke: Invoke, home: Path, server: str, command: str) -> tuple[int, str]:
    (home / "kube.yaml").write_text(kubeconfig(server, user={"token": "t"}))
    words = command.split()
    at = words.index("--") if "--" in words else len(words)
    flags = ["--kubeconfig", str(home / "kube.yaml"), "--request-timeout", "200ms"]
    done = invoke(*words[:at], *flags, *words[at:])
    return done.code, done.out + done.err


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.command)
def test_a_dead_server_is_no_cluster(invoke: Invoke, files: Path, dead: str, row: Row) -> None:
    code, words = told(invoke, files, dead, row.command)
    assert code == EXIT_NO_CLUSTER, words


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.command)
def test_a_server_that_denies_everything(
    invoke: Invoke, files: Path, denying: str, row: Row
) -> None:
    code, words = told(invoke, files, denying, row.command)
    assert code == EXIT_DENIED, words


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.command)
def test_a_silent_server_is_a_timeout(invoke: Invoke, files: Path, silent: str, row: Row) -> None:
    code, words = told(invoke, files, silent, row.command)
    assert code == EXIT_TIMEOUT, words


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.command)
def test_unknown_names_are_not_found(invoke: Invoke, files: Path, served: Served, row: Row) -> None:
    words = row.command.split()
    at = words.index("--") if "--" in words else len(words)
    config = ["--kubeconfig", str(served.data / "admin.kubeconfig")]
    done = invoke(*words[:at], *config, *words[at:])
    assert done.code == row.unknown, done.out + done.err


def test_every_command_has_its_row() -> None:
    leaves = {
        context.command_path.partition(" ")[2]
        for context in walk(KVESTIGATE_PROGRAM)
        if not is_group(context)
    }
    tried = {name for name in leaves if any(row.command.startswith(name) for row in ROWS)}
    assert leaves - tried - NO_SERVER - SERVERS == set()
