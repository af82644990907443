"""Clusters that run pods, used by the real kubectl: ours, and our nodes under the real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from abc import abstractmethod
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest

from kvestigate.cluster.assembly.directory import clusters_directory, known
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster

Object = dict[str, Any]
NODES = ["node-1", "node-2"]


class Live(Protocol):
    """A cluster with two nodes that run processes."""

    kubeconfig: Path

    @abstractmethod
    def crash(self) -> None:
        """Kill -9 what runs the nodes, and start it again."""


class Embedded:
    """`kvestigate up`"""

    def __init__(self, home: Path) -> None:
        self.kubeconfig = home / "kubeconfig"
        self._environ = os.environ | {
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "KUBECONFIG": str(self.kubeconfig),
        }
        self._up()

    def _run(self, *words: str) -> str:
        command = [sys.executable, "-m", "kvestigate", *words]
        return subprocess.check_output(command, env=self._environ, text=True, timeout=60)

    def _up(self) -> None:
        self._run("up", "--name", "live", "--nodes", str(len(NODES)))

    def crash(self) -> None:
        [cluster] = known(clusters_directory(self._environ))
        process = psutil.Process(cluster.read().pid)
        process.kill()
        process.wait(60)  # or `up` might find it running still
        self._up()

    def close(self) -> None:
        self._run("down", "--name", "live", "--delete")


class UnderUpstream:
    """Our nodes in a process of their own, under the real control plane."""

    def __init__(self, cluster: UpstreamCluster, home: Path) -> None:
        self.kubeconfig = cluster.admin_kubeconfig()
        self._home = home
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "tests.live.agents", str(self.kubeconfig), str(self._home)]
        self._agents = subprocess.Popen([*command, *NODES], stdout=subprocess.PIPE, text=True)
        assert self._agents.stdout is not None
        assert self._agents.stdout.readline() == "ready\n"

    def crash(self) -> None:
        self._end(signal.SIGKILL)
        self._start()

    def close(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, signal_: signal.Signals) -> None:
        self._agents.send_signal(signal_)
        with self._agents:
            self._agents.wait(60)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    cluster = Embedded(tmp_path_factory.mktemp("live"))
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def theirs(
    full_kubernetes: UpstreamCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Live]:
    cluster = UnderUpstream(full_kubernetes, tmp_path_factory.mktemp("nodes"))
    yield cluster
    cluster.close()


@pytest.fixture(scope="module", params=["ours", "theirs"])
def live(request: pytest.FixtureRequest) -> Live:
    cluster: Live = request.getfixturevalue(request.param)
    return cluster


class Kubectl:
    """The real one, in one namespace."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.namespace = namespace
        self.words = [
            binaries.find().path("kubectl"),
            f"--kubeconfig={kubeconfig}",
            f"--namespace={namespace}",
            f"--cache-dir={kubeconfig.parent / 'cache'}",
        ]

    def __call__(self, *arguments: str, given: str = "", code: int = 0) -> str:
        """What it prints; it must end with `code`."""
        done = subprocess.run(
            [*self.words, *arguments],
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def apply(self, *objects: Object) -> None:
        self("apply", "-f", "-", given="\n---\n".join(map(json.dumps, objects)))

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def lines(self, of: str) -> Generator[str]:
        """What a pod writes, as it comes: it may be Ready before it has come to that."""
        words = [*self.words, "logs", "--follow", "--tail=-1", of]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as following:
            assert following.stdout is not None
            try:
                yield from following.stdout
            finally:
                following.terminate()


@pytest.fixture
def kubectl(live: Live) -> Iterator[Kubectl]:
    namespace = f"live-{uuid.uuid4().hex[:8]}"
    kubectl = Kubectl(live.kubeconfig, namespace)
    kubectl("create", "namespace", namespace)
    # The real control plane makes it in its own time, and pods are refused until then.
    kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    yield kubectl
    kubectl("delete", "namespace", namespace, "--wait=false")
