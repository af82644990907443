"""Files that a job sends to its shards: those of any size, and those that changed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kvestigate_client import DistributedJob
from kvestigate_client.shards import JOB_OPERATIONS
from tests.cybernet.conftest import Document, changed, recorded
from tests.cybernet.served import ServedSpace
from tests.hosts_cluster import HostsCluster

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(os.geteuid() != 0, reason="tmpfs can only be mounted by root"),
]

Job = Callable[..., DistributedJob]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    made = HostsCluster(tmp_path_factory.mktemp("files"), nodes=2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def space_document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    allowed = [*JOB_OPERATIONS, "workspace.status", "workspace.logs", "workspace.fetch"]
    path = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    document = changed("constraints.hosts", None, changed("operations.allow", allowed))
    return changed("audit.path", str(path), document)


@pytest.fixture(scope="module")
def space(cluster: HostsCluster, space_document: Document) -> Iterator[ServedSpace]:
    with ServedSpace(space_document, cluster.access()) as served:
        yield served


@pytest.fixture
def job(space: ServedSpace) -> Job:
    client = space.client("ada")
    return lambda shards=2: DistributedJob(client, prefix="agent-job", shards=shards)


def test_a_file_that_fits_into_no_request_arrives(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvestigate_client.packing.ARCHIVE_BYTES", 1000)
    content = random.Random(7).randbytes(4500)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "large.bin").write_bytes(content)
    with job() as running:
        running.discover_and_plan()
        running.provision("16Mi")
        for _ in range(2):  # what is there already is written anew
            running.sync_code(tmp_path, subdir="datasets")
        for place in running.fetch("datasets/data", tmp_path / "back"):
            assert (place / "data" / "large.bin").read_bytes() == content
        monkeypatch.setattr("kvestigate.workspace.fetch.LARGEST_ANSWER", 1000)
        monkeypatch.setattr("kvestigate_client.shard_files._PART", 1000)
        for path in ("datasets/data", "datasets/data/large.bin"):
            for place in running.fetch(path, tmp_path / "in-parts"):
                found = place / path.removeprefix("datasets/")
                found = found / "large.bin" if path.endswith("data") else place / "large.bin"
                assert found.read_bytes() == content


def test_a_second_sync_sends_only_what_changed(
    job: Job, space_document: Document, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "large.bin").write_bytes(random.Random(7).randbytes(200_000))
    (tmp_path / "main.py").write_text("1")
    (tmp_path / "run.sh").touch(0o755)
    (tmp_path / "link").symlink_to("/etc/hostname")

    def archives() -> list[int]:
        """The bytes of all archives that were sent so far."""
        sent = [it for it in recorded(space_document) if it["operation"] == "workspace.sync"]
        return [int(it["parameters"]["archive"].strip("(").split()[0]) for it in sent]

    with job() as running:
        running.discover_and_plan()
        running.provision("16Mi")
        before = len(archives())
        running.sync_code(tmp_path)
        running.sync_per_shard({0: tmp_path / "lib"}, "code/lib")
        assert len(archives()) == before + 2, "rank 0 has it already"
        running.sync_code(tmp_path)
        assert len(archives()) == before + 2
        (tmp_path / "main.py").write_text("22")
        (tmp_path / "run.sh").chmod(0o644)
        running.sync_code(tmp_path)
        assert len(archives()) == before + 4
        assert max(archives()[before + 2 :]) < 2_000
        running.run(["sh", "-c", "cat main.py; readlink link; test -x run.sh || stat -c %s lib/*"])
        running.wait_until_complete(0.1, timeout=30, progress=lambda line: None)
        assert running.logs(1) == "22/etc/hostname\n200000\n"
