"""Gateways as processes of their own: two of one cyberspace, and one that is killed meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kvestigate.render.encode import to_yaml
from kvestigate_client import CybernetClient, DistributedJob
from kvestigate_client.gateway import QuotaExceeded
from kvestigate_client.shards import JOB_OPERATIONS
from tests.cybernet.conftest import TOKENS, Document, audited, changed
from tests.hosts_cluster import HostsCluster

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(os.geteuid() != 0, reason="tmpfs can only be mounted by root"),
]

LIMIT = 7
CREATES = 50


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    made = HostsCluster(tmp_path_factory.mktemp("gateways"), nodes=2)
    yield made
    made.close()


@pytest.fixture
def document(tmp_path: Path) -> Document:
    allowed = [*JOB_OPERATIONS, "workspace.status", "workspace.logs"]
    document = changed("operations.allow", allowed)
    document = changed("constraints.hosts", {}, document)
    quotas = {"max_active_workspaces_per_identity": LIMIT, "max_total_active_workspaces": LIMIT}
    document = changed("quotas", quotas, document)
    return changed("audit.path", str(tmp_path / "audit.jsonl"), document)


def started(cluster: HostsCluster, document: Document) -> tuple[subprocess.Popen[str], str]:
    """A gateway that answers, and its URL."""
    config = Path(document["audit"]["path"]).with_suffix(".yaml")
    config.write_text(to_yaml(document))
    command = [sys.executable, "-m", "kvestigate", "cybernet", "serve", "--config", str(config)]
    process = subprocess.Popen(
        command,
        env=cluster.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1]


def killed(process: subprocess.Popen[str]) -> None:
    with process:
        process.kill()


@contextmanager
def serving(cluster: HostsCluster, document: Document) -> Iterator[str]:
    process, url = started(cluster, document)
    try:
        yield url
    finally:
        killed(process)


def named(number: int) -> dict[str, Any]:
    storage = {"mode": "all-tmpfs", "tmpfs_size": "4Mi"}
    place = {"name": f"agent-w{number}", "node": f"node-{number % 2 + 1}"}
    return {"workspace": {**place, "storage": storage, "gpu": {"cordon_node": False}}}


def test_two_gateways_give_away_exactly_the_limit(
    cluster: HostsCluster, document: Document, tmp_path: Path
) -> None:
    other = changed("audit.path", str(tmp_path / "other.jsonl"), document)
    with serving(cluster, document) as one, serving(cluster, other) as two:

        def create(number: int) -> str:
            identity = list(TOKENS)[number // 2 % 2]
            client = CybernetClient((one, two)[number % 2], TOKENS[identity], timeout=120)
            try:
                client.call("workspace.create", named(number))
            except QuotaExceeded:
                return "refused"
            return "made"

        with ThreadPoolExecutor(CREATES) as pool:
            outcomes = Counter(pool.map(create, range(CREATES)))
        assert outcomes == {"made": LIMIT, "refused": CREATES - LIMIT}
        there = [
            (CybernetClient(one, token), it)
            for token in TOKENS.values()
            for it in CybernetClient(one, token).call("workspace.status")["workspaces"]
        ]
        assert len(there) == LIMIT
        for client, it in there:
            number = int(it["name"].removeprefix("agent-w"))
            client.call("workspace.destroy", named(number))
    marks = "ls /opt/kvestigate-workspaces/.state/*.json 2>/dev/null | wc -l"
    assert [cluster.on_host(marks, node).strip() for node in ("node-1", "node-2")] == ["0", "0"]


def test_a_job_outlives_the_gateway_that_it_was_given_to(
    cluster: HostsCluster, document: Document
) -> None:
    """It is killed while workspaces are made and while the job runs, and started again."""
    process, url = started(cluster, document)
    document = changed("listen.http.address", url.removeprefix("http://"), document)
    over = threading.Event()
    kills = 0

    def kill_and_start() -> None:
        nonlocal process, kills
        while not over.wait(2.5):
            killed(process)
            kills += 1
            process, _ = started(cluster, document)

    killing = threading.Thread(target=kill_and_start)
    try:
        client = CybernetClient(url, TOKENS["ada"], timeout=60, patience=90)
        with DistributedJob(client, prefix="agent-job", shards=2) as job:
            job.discover_and_plan(strategy="most-free-capacity")
            killing.start()
            job.provision(tmpfs_per_shard="4Mi")
            job.run(["sh", "-c", "sleep 6; echo done"])
            results = job.wait_until_complete(0.5, timeout=120)
            assert [it.exit_code for it in results] == [0] * 2
            assert [job.logs(rank).split() for rank in range(2)] == [["done"]] * 2
        assert client.call("workspace.status")["workspaces"] == []
    finally:
        over.set()
        if killing.ident is not None:
            killing.join()
        killed(process)
    assert kills >= 2
    begun = [it for it in audited(document) if it["stage"] == "intent"]
    assert {it["operation"] for it in begun} >= {"workspace.create", "workspace.run"}
