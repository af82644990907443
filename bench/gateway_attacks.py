"""Attempts of an agent to hold up the gateway: what they cost another agent.

python -m bench.gateway_attacks PORT TOKEN KIND

does one of them without a pause, and prints a line once it has begun.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvestigate.cybernet.tokens import digest
from kvestigate.render.encode import to_yaml

TOKENS = {"attacker": "token-of-the-attacker", "neighbour": "token-of-the-neighbour"}
_WORKSPACE = {"name": "agent-a", "node": "node-1", "storage": {"tmpfs_size": "1Gi"}}
_PATH = "/api/v1/op/"


def _archive(members: Iterator[tarfile.TarInfo]) -> str:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return base64.b64encode(gzip.compress(file.getvalue(), 1)).decode()


def _sync(**parameters: object) -> tuple[str, Mapping[str, object]]:
    return "workspace.sync", {"workspace": _WORKSPACE, **parameters}


def _entries(count: int, name: str = "{}") -> str:
    return _archive(tarfile.TarInfo(name.format(number)) for number in range(count))


def _zeros() -> str:
    member = tarfile.TarInfo("zeros")
    member.size = 200 << 20
    return _archive(iter([member]))


def _globs(number: int, tail: str = "") -> list[str]:
    return [f"*a{'?' * 13}{each}{tail}" for each in range(number)]


ATTACKS: Mapping[str, Callable[[], tuple[str, Mapping[str, object]]]] = {
    "excludes-60000": lambda: _sync(excludes=["*a*b*c*"] * 60_000, archive=_entries(50_000)),
    "excludes-19000": lambda: _sync(excludes=["*a*b*c*"] * 19_000, archive=_entries(50_000)),
    "excludes-200": lambda: _sync(excludes=_globs(200), archive=_entries(50_000)),
    "deep-archive": lambda: _sync(archive=_entries(20_000, "a/" * 60 + "{}"), excludes=_globs(50)),
    "archive-of-zeros": lambda: _sync(archive=_zeros()),
    "values-19000": lambda: _sync(archive="", excludes=[[]] * 19_000),
    "text-of-1MiB": lambda: _sync(archive="", subdir="a" * 1_000_000),
    "unknown-operation": lambda: ("x" * 2_000, {}),
}


def main() -> None:
    port, token, kind = sys.argv[1:]
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    operation, parameters = ATTACKS[kind]()
    body = json.dumps(parameters).encode()
    agent = Agent(int(port), token)
    for number in range(1 << 62):
        agent.call(operation, body)
        if not number:
            print("begun", flush=True)


class Agent:
    """One connection to a gateway."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def call(self, operation: str, body: bytes = b"{}") -> int:
        """The status of the answer."""
        try:
            self._connection.request("POST", f"{_PATH}{operation}", body, self._headers)
            with self._connection.getresponse() as answer:
                answer.read()
                return answer.status
        except OSError:  # it refused to read all of that
            self._connection.close()
            return 0

    def times(self, count: int) -> list[float]:
        """Milliseconds of each of so many small requests."""
        spent = []
        for _ in range(count):
            began = time.perf_counter()
            status = self.call("report.list")
            spent.append((time.perf_counter() - began) * 1000)
            assert status == 200, status
        return spent


@contextmanager
def served(directory: Path, kubeconfig: Path) -> Iterator[int]:
    """A gateway in a process of its own; its port."""
    config = directory / "space.yaml"
    config.write_text(to_yaml(_space(directory)))
    command = [sys.executable, "-m", "kvestigate", "cybernet", "serve", "--config", str(config)]
    environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().split()[-1].rstrip("/").rpartition(":")[2])
        finally:
            process.kill()


@contextmanager
def attacked(port: int, kind: str) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.gateway_attacks", str(port), TOKENS["attacker"], kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def _space(directory: Path) -> dict[str, Any]:
    tokens = [{"identity": name, "sha256": digest(token)} for name, token in TOKENS.items()]
    return {
        "apiVersion": "kvestigate.cybernet/v1",
        "kind": "Cyberspace",
        "metadata": {"name": "bench"},
        "listen": {"http": {"address": "127.0.0.1:0"}},
        "auth": {"tokens": tokens},
        "operations": {"allow": ["report.list", "workspace.sync"]},
        "audit": {"path": str(directory / "audit.jsonl")},
    }


if __name__ == "__main__":
    main()
