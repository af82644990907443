"""The kits of `examples/` do what their pages say, in small."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvestigate.client.access import Access
from kvestigate.cybernet.templates import TEMPLATES, cyberspace
from kvestigate.cybernet.tokens import digest
from tests.cybernet.conftest import changed
from tests.cybernet.served import ServedSpace
from tests.hosts_cluster import HostsCluster
from tests.upstream.processes import free_ports

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(os.geteuid() != 0, reason="tmpfs can only be mounted by root"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
KITS = sorted(path for path in (EXAMPLES / "workflows").iterdir() if path.is_dir())
TOKEN = "token-of-the-kit"
SHARDS = 2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    made = HostsCluster(tmp_path_factory.mktemp("kits"), nodes=SHARDS)
    yield made
    made.close()


def free_port() -> str:
    (port,) = free_ports(1)
    return str(port)


def run(
    program: Path, document: dict[str, Any], access: Access, home: Path, **size: str
) -> list[str]:
    """What an agent prints, once its cyberspace is served."""
    document = changed("audit.path", str(home / "audit.jsonl"), document)
    document = changed("listen.http.address", "127.0.0.1:0", document)
    document = changed("auth.tokens.0.sha256", digest(TOKEN), document)
    with ServedSpace(document, access) as space:
        done = subprocess.run(
            [sys.executable, str(program)],
            cwd=home,
            env={
                **os.environ,
                "KVESTIGATE_CYBERNET_URL": space.url,
                "KVESTIGATE_CYBERNET_TOKEN": TOKEN,
                "SHARDS": str(SHARDS),
                "POLL_SECONDS": "0.2",
                **size,
            },
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("kit", "size", "last"),
    [
        (
            "parallel-batch-processing",
            {"LINES": "50"},
            "2 chunks, 800 words; most often: ",
        ),
        (
            "coordinator-workers-http",
            {"TASKS": "20", "COORDINATOR_PORT": "free"},
            "20 tasks on 1 workers; the sum is 2470",
        ),
        ("readonly-monitoring", {"ROUNDS": "2", "INTERVAL_SECONDS": "0"}, '{"node": "node-2", '),
        (
            "gpu-single-node",
            {"GPUS": "6", "TMPFS": "16Mi"},
            "trained on 6 GPUs of node-",
        ),
        (
            "cpu-bulk-dataset-gen",
            {"ROWS_PER_SHARD": "40", "PROCESSES": "1", "TMPFS": "16Mi"},
            "80 rows in 2 parts, made on 2 nodes",
        ),
    ],
)
def test_a_kit_does_what_it_says(
    cluster: HostsCluster, tmp_path: Path, kit: str, size: dict[str, str], last: str
) -> None:
    directory = EXAMPLES / "workflows" / kit
    document = yaml.safe_load((directory / "cyberspace.yaml").read_text())
    size = {name: free_port() if value == "free" else value for name, value in size.items()}
    lines = run(directory / "agent.py", document, cluster.access(), tmp_path, **size)
    assert lines[-1].startswith(last)
    assert cluster.run("workspace", "status", "-o", "json").count('"node"') == 0


def test_shards_that_differ(cluster: HostsCluster, tmp_path: Path) -> None:
    template = next(it for it in TEMPLATES if it.name == "distributed-cpu")
    document = cyberspace(template, "pool", "127.0.0.1:0", "agent", digest(TOKEN), "audit.jsonl")
    document["constraints"]["hosts"] = {}
    program = EXAMPLES / "agents" / "heterogeneous_pipeline.py"
    size = {"RECORDS": "30", "PIPELINE_PORT": free_port()}
    lines = run(program, document, cluster.access(), tmp_path, **size)
    assert lines[-1] == "30 records from 1 workers"


@pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)
def test_a_kit_is_complete(kit: Path) -> None:
    page = (kit / "README.md").read_text()
    for title in ("Operator", "Agent", "What you see", "Extend it", "Left out"):
        assert f"\n## {title}\n" in page
    assert (kit / "agent.py").exists()
    assert (kit / "cyberspace.yaml").exists()
