"""On the real API server: a collector that is killed again and again misses nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.collect.conftest import DEPLOYMENTS, deployment, image
from tests.upstream.cluster import UpstreamCluster
from tests.upstream.judge import Judge

PROGRAM = "from kvestigate.cli.main import k8s_collect; k8s_collect()"
WRITERS = 2


@dataclass
class Writing:
    """Changes deployments at full speed, and writes down every state that ever was."""

    cluster: UpstreamCluster
    namespace: str
    count: int
    ids: set[str] = field(default_factory=set)
    last: dict[str, str] = field(default_factory=dict)
    """Name -> the id of its final state."""
    enough: threading.Event = field(default_factory=threading.Event)

    def note(self, made: dict[str, Any]) -> None:
        meta = made["metadata"]
        self.last[meta["name"]] = id_ = f"{meta['uid']}@{meta['resourceVersion']}"
        self.ids.add(id_)

    def create(self, judge: Judge, name: str) -> None:
        path = DEPLOYMENTS.path(namespace=self.namespace)
        self.note(judge.post(path, deployment(name)))

    def run(self, writer: int) -> None:
        names = [f"web-{number}" for number in range(writer, self.count, WRITERS)]
        with self.cluster.judge() as judge:
            for name in names:
                self.create(judge, name)
            change = 1
            while not self.enough.is_set() or change == 1:
                change += 1
                for name in names:
                    path = DEPLOYMENTS.path(namespace=self.namespace, name=name)
                    self.note(judge.merge(path, image(f"web:{change}")))


@dataclass
class Collecting:
    """Collectors that continue each other's work."""

    config: Path
    namespace: str
    directory: Path

    @property
    def output(self) -> Path:
        return self.directory / "events.ndjson"

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """One that is killed at the end, unless it ended itself."""
        flags = ["--kinds", "Deployment", "--namespaces", self.namespace, "--emit-initial"]
        flags += ["--output", str(self.output), "--checkpoint", str(self.directory / "state")]
        command = [sys.executable, "-c", PROGRAM, "watch", "--kubeconfig", str(self.config), *flags]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                yield process
            finally:
                process.kill()

    def killed_after(self, lines: int) -> None:
        with self.running() as process:
            assert process.stdout is not None
            for _ in range(lines):
                assert process.stdout.readline()

    def until(self, ids: set[str]) -> None:
        """Run one until it has told all of `ids` or they are in the file already."""
        missing = ids - set(self.told())
        with self.running() as process:
            assert process.stdout is not None
            while missing:
                missing.discard(json.loads(process.stdout.readline())["id"])
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
            assert process.wait() == 0

    def told(self) -> dict[str, set[str]]:
        """Id -> the different lines that bear it.

        What follows the last newline was torn by a kill, and goes when the next one starts.
        """
        found: dict[str, set[str]] = {}
        if self.output.exists():
            whole, _, _torn = self.output.read_text().rpartition("\n")
            for line in whole.splitlines():
                found.setdefault(json.loads(line)["id"], set()).add(line)
        return found


def collect_through_kills(
    cluster: UpstreamCluster, namespace: str, directory: Path, *, deployments: int, kills: int
) -> tuple[Writing, Collecting]:
    random = Random(7)
    writing = Writing(cluster, namespace, deployments)
    collecting = Collecting(cluster.admin_kubeconfig(), namespace, directory)
    with cluster.judge() as judge:
        writing.create(judge, "canary")
    collecting.until(set(writing.ids))
    writers = [threading.Thread(target=writing.run, args=(it,)) for it in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(kills):
            collecting.killed_after(random.randint(1, 2 * deployments // kills))
    finally:
        writing.enough.set()
        for writer in writers:
            writer.join()
    collecting.until(set(writing.last.values()))
    return writing, collecting


@pytest.mark.timeout(300)
def test_nothing_is_missing_after_kills(
    kubernetes: UpstreamCluster, namespace: str, tmp_path: Path
) -> None:
    writing, collecting = collect_through_kills(
        kubernetes, namespace, tmp_path, deployments=500, kills=5
    )
    told = collecting.told()
    assert writing.ids <= told.keys()
    assert [id_ for id_, lines in told.items() if len(lines) > 1] == []
    assert len(writing.last) == 501


def test_a_version_that_the_server_forgot_costs_no_state_and_no_repeat(
    kubernetes: UpstreamCluster, namespace: str, tmp_path: Path
) -> None:
    writing = Writing(kubernetes, namespace, 0)
    collecting = Collecting(kubernetes.admin_kubeconfig(), namespace, tmp_path)
    with kubernetes.judge() as judge:
        for name in ("kept", "changed", "gone"):
            writing.create(judge, name)
        collecting.until(set(writing.ids))
        path = DEPLOYMENTS.path(namespace=namespace, name="changed")
        writing.note(judge.merge(path, image("web:2")))
        writing.note(judge.merge(path, image("web:3")))
        judge.delete(DEPLOYMENTS.path(namespace=namespace, name="gone"))
    kubernetes.forget_and_restart()
    before = collecting.output.read_text().splitlines()
    collecting.until({writing.last["changed"]})
    after = collecting.output.read_text().splitlines()[len(before) :]
    assert [json.loads(line)["id"] for line in after] == [writing.last["changed"]]
