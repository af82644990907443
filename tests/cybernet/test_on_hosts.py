"""Agents on a real cluster: each has its own workspaces, as many as it may have, and no more."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from kvestigate.aio.clock import WallClock
from kvestigate.app.load import parse_app
from kvestigate.app.manage import AppOptions
from kvestigate.app.operations import DOWN, UP
from kvestigate.client.connect import connect
from kvestigate.cybernet.apps import Gate
from kvestigate.cybernet.audit_log import AuditLog
from kvestigate.cybernet.gateway import Gateway
from kvestigate.cybernet.ledger import Book
from kvestigate.cybernet.refusals import QuotaExceeded as Exceeded
from kvestigate.errors import Conflict
from kvestigate.nodeops.cordon import set_cordoned
from kvestigate.render.encode import to_yaml
from kvestigate.workspace.cordons import cordon_reason
from kvestigate.workspace.lifecycle import is_cordoned
from kvestigate_client import CybernetClient, DistributedJob, JobFailed, ShardTask
from kvestigate_client.gateway import (
    ConflictFound,
    ConstraintViolated,
    CybernetError,
    NoSuchThing,
    NotAllowed,
    QuotaExceeded,
)
from kvestigate_client.placement import NoPlace
from kvestigate_client.shards import JOB_OPERATIONS
from tests.contexts import acting
from tests.cybernet.conftest import Document, changed, load, recorded
from tests.cybernet.served import ServedSpace
from tests.hosts_cluster import HostsCluster

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(os.geteuid() != 0, reason="tmpfs can only be mounted by root"),
]

ALLOWED = [
    *JOB_OPERATIONS,
    "workspace.status",
    "workspace.logs",
    "workspace.fetch",
    "workspace.diff",
    "workspace.gpus",
    "workspace.kill",
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    made = HostsCluster(tmp_path_factory.mktemp("cybernet"), nodes=3)
    yield made
    made.close()


@pytest.fixture(scope="module")
def space_document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    document = changed("operations.allow", ALLOWED)
    document = changed("constraints.hosts", {"require": {"min_free_gpu": 1}}, document)
    document = changed("quotas.max_active_workspaces_per_identity", 3, document)
    document = changed("quotas.max_total_active_workspaces", 4, document)
    path = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    return changed("audit.path", str(path), document)


@pytest.fixture(scope="module")
def space(cluster: HostsCluster, space_document: Document) -> Iterator[ServedSpace]:
    with ServedSpace(space_document, cluster.access()) as served:
        yield served


@pytest.fixture
def ada(space: ServedSpace) -> Iterator[CybernetClient]:
    client = space.client("ada")
    yield client
    for identity in ("ada", "bob"):
        client = space.client(identity)
        for it in client.call("workspace.status")["workspaces"]:
            client.call("workspace.destroy", {"workspace": named(it["name"], it["node"])})


def named(name: str, node: str = "node-1", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "node": node,
        "storage": {"mode": "all-tmpfs", "tmpfs_size": "16Mi"},
        "gpu": {"cordon_node": False},
        **more,
    }


def test_a_workspace_is_its_owners_alone(space: ServedSpace, ada: CybernetClient) -> None:
    bob = space.client("bob")
    mine = {"workspace": named("agent-a", gpu={"indices": [1, 2], "cordon_node": False})}
    ada.call("workspace.create", mine)
    [seen] = ada.call("workspace.status")["workspaces"]
    assert seen["owner"] == "research-agents/ada"
    assert bob.call("workspace.status")["workspaces"] == []
    for operation, more in (
        ("workspace.create", {}),
        ("workspace.ps", {}),
        ("workspace.diff", {}),
        ("workspace.run", {"tag": "x", "command": ["true"]}),
        ("workspace.logs", {"tag": "x"}),
        ("workspace.fetch", {"path": "code"}),
        ("workspace.kill", {"tag": "x"}),
        ("workspace.destroy", {}),
    ):
        with pytest.raises(NotAllowed):
            bob.call(operation, {**mine, **more})
    with pytest.raises(ConstraintViolated, match="not reserved by this workspace"):
        ada.call("workspace.run", {**mine, "tag": "x", "command": ["true"], "gpus": [0, 1]})
    for path in ({"path": "code/nothing"}, {"path": "code/nothing", "limit": 1}):
        with pytest.raises(NoSuchThing, match="code/nothing does not exist"):
            ada.call("workspace.fetch", {**mine, **path})
    assert ada.call("workspace.destroy", mine)["plan"]["steps"]
    with pytest.raises(NoSuchThing):
        ada.call("workspace.ps", mine)
    assert not ada.call("workspace.destroy", mine)["plan"]["steps"], "a second time is no failure"


def test_what_is_not_an_agents_is_not_removed_by_it(
    cluster: HostsCluster, ada: CybernetClient, tmp_path: Path
) -> None:
    """Nor is it told whether there is such a thing."""
    theirs = tmp_path / "w.yaml"
    theirs.write_text(to_yaml({"workspace": named("agent-op")}))
    meant = ("--config", str(theirs), "--apply", "--i-understand-this-modifies-hosts")
    cluster.run("workspace", "create", *meant)
    try:
        answers = [
            ada.call("workspace.destroy", {"workspace": named(name)})["plan"]
            for name in ("agent-op", "agent-no")
        ]
        assert [(plan["steps"], plan["notes"]) for plan in answers] == [
            ([], ["it does not exist"])
        ] * 2
        assert "agent-op" in cluster.run("workspace", "status")
    finally:
        cluster.run("workspace", "destroy", *meant)


def test_what_the_operator_made_is_out_of_reach(
    cluster: HostsCluster, ada: CybernetClient, tmp_path: Path
) -> None:
    config = tmp_path / "w.yaml"
    config.write_text(
        "workspace: {name: agent-ops, node: node-1, storage: {mode: disk}, "
        "gpu: {cordon_node: false}}\n"
    )
    meant = ("--config", str(config), "--apply", "--i-understand-this-modifies-hosts")
    cluster.run("workspace", "create", *meant)
    try:
        answer = ada.call("workspace.destroy", {"workspace": named("agent-ops")})
        assert answer["plan"]["steps"] == [], "answered as if there were none"
        assert "agent-ops" in cluster.run("workspace", "status")
        with pytest.raises(ConflictFound) as refused:
            ada.call("workspace.create", {"workspace": named("agent-ops")})
        assert "belongs to somebody else" in refused.value.message
    finally:
        cluster.run("workspace", "destroy", *meant)


def test_quotas_hold_for_those_who_ask_at_once_and_after_a_restart(
    cluster: HostsCluster, space_document: Document, space: ServedSpace, ada: CybernetClient
) -> None:
    def create(number: int) -> str:
        workspace = named(f"agent-{number}", f"node-{number % 3 + 1}")
        try:
            ada.call("workspace.create", {"workspace": workspace})
        except QuotaExceeded as error:
            return error.reason
        return "made"

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(create, range(6)))
    assert sorted(outcomes) == ["made"] * 3 + ["quotas.max_active_workspaces_per_identity"] * 3
    assert len(ada.call("workspace.status")["workspaces"]) == 3
    with ServedSpace(space_document, cluster.access()) as again:
        while again.client("ada").info()["usage"] is None:
            pass  # it is counted from the start
        assert again.client("ada").info()["usage"]["workspaces"] == 3
        workspace = {"workspace": named("agent-more")}
        with pytest.raises(QuotaExceeded):
            again.client("ada").call("workspace.create", workspace)
        again.client("bob").call("workspace.create", workspace)
        with pytest.raises(QuotaExceeded) as caught:
            again.client("bob").call("workspace.create", {"workspace": named("agent-most")})
        assert caught.value.reason == "quotas.max_total_active_workspaces"
    made = [it for it in recorded(space_document) if it["operation"] == "workspace.create"][-9:]
    assert [it["identity"] for it in made] == ["ada"] * 7 + ["bob"] * 2
    assert sum(it["outcome"] == "ok" for it in made) == 4
    assert [it["quota"]["workspaces"] for it in made][-3:] == [3, 4, 4]


def test_an_agent_need_not_say_what_it_may_not_do(ada: CybernetClient) -> None:
    workspace = named("agent-a")
    del workspace["gpu"]
    made = ada.call("workspace.create", {"workspace": workspace})
    assert made["applied"]
    lines = [step["line"] for step in made["plan"]["steps"]]
    assert not any("cordon" in line for line in lines)
    assert any("mount -t tmpfs" in line for line in lines)
    assert not any(step["script"] or step["undo"] for step in made["plan"]["steps"])


@pytest.mark.parametrize(
    ("workspace", "rule"),
    [
        (named("mine"), "constraints.workspace.name_pattern"),
        (named("agent-a", storage={"mode": "disk"}), "constraints.workspace.storage.allowed_modes"),
        (
            named("agent-a", gpu={"cordon_node": True}),
            "constraints.workspace.gpu.cordon_node_forbidden",
        ),
        (named("agent-a", root="/etc"), "workspace.root"),
        (named("agent-a", sources=[{"local": "/etc"}]), "workspace.sources"),
        (named("../etc"), "workspace.name"),
        (named("agent-a", "node-9"), "constraints.hosts.require"),
    ],
)
def test_a_workspace_against_the_rules_is_not_made(
    ada: CybernetClient, workspace: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ConstraintViolated) as caught:
        ada.call("workspace.create", {"workspace": workspace})
    assert caught.value.reason == rule


def archive(*members: tuple[str, str]) -> str:
    """A tar with files, or with links where the content begins with `->`."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content.startswith("->"):
                info.type, info.linkname = tarfile.SYMTYPE, content[2:]
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content.encode()))
    return base64.b64encode(target.getvalue()).decode()


def test_nothing_leads_out_of_a_workspace(cluster: HostsCluster, ada: CybernetClient) -> None:
    mine = {"workspace": named("agent-a")}
    ada.call("workspace.create", mine)
    for more in (
        {"archive": archive(("../../../../tmp/escaped", "x"))},
        {"archive": archive(("/tmp/escaped", "x"))},
        {"archive": archive(("out", "->/tmp"), ("out/escaped", "x"))},
        {"archive": archive(("ok", "x")), "subdir": "../../../../tmp"},
        {"archive": archive(("ok", "x")), "subdir": "pids"},
    ):
        with pytest.raises(CybernetError):
            ada.call("workspace.sync", {**mine, **more})
    for path in ("../../../etc/passwd", "/etc/passwd", "code/../../../../etc/passwd", ""):
        with pytest.raises(CybernetError):
            ada.call("workspace.fetch", {**mine, "path": path})
    words = ["$(touch /tmp/escaped)", "; ls", "`id`", "a b", "--", "'\"", "ü"]
    run = {**mine, "tag": "t", "command": ["printf", "%s|", *words], "env": {"X": "$(id)"}}
    ada.call("workspace.run", run)
    while ada.call("workspace.ps", mine)["runs"][0]["state"] == "running":
        pass
    assert ada.call("workspace.logs", {**mine, "tag": "t"})["text"] == "|".join(words) + "|"
    seen = cluster.run("fanout", "exec", "--target", "nodes", "--", "ls", "/tmp")
    assert "escaped" not in seen


def test_a_log_that_is_cut_says_so(ada: CybernetClient, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = {"workspace": named("agent-a")}
    ada.call("workspace.create", mine)
    ada.call("workspace.run", {**mine, "tag": "t", "command": ["echo", "0123456789"]})
    while ada.call("workspace.ps", mine)["runs"][0]["state"] == "running":
        pass
    whole = ada.call("workspace.logs", {**mine, "tag": "t"})
    assert (whole["text"], whole["truncated"], whole["offset"]) == ("0123456789\n", False, 0)
    monkeypatch.setattr("kvestigate.workspace.runs.LONGEST_ANSWER", 4)
    cut = ada.call("workspace.logs", {**mine, "tag": "t"})
    assert (cut["text"], cut["truncated"], cut["offset"]) == ("789\n", True, 7)
    ada.call("workspace.destroy", mine)


Job = Callable[..., DistributedJob]


@pytest.fixture
def job(ada: CybernetClient) -> Job:
    return lambda shards=2: DistributedJob(ada, prefix="agent-job", shards=shards)


def left(ada: CybernetClient) -> list[Any]:
    found: list[Any] = ada.call("workspace.status")["workspaces"]
    return found


def test_a_job_runs_on_every_shard_and_leaves_nothing(
    job: Job, ada: CybernetClient, tmp_path: Path
) -> None:
    code = tmp_path / "code"
    (code / "__pycache__").mkdir(parents=True)
    (code / "__pycache__" / "x.pyc").write_text("x")
    (code / "main.sh").write_text(
        "ls; echo $DIST_RANK $DIST_WORLD_SIZE $DIST_PEERS $DIST_COORDINATOR; "
        "cat ../datasets/in/*.txt > ../checkpoints/out; echo $CUDA_VISIBLE_DEVICES\n"
    )
    for rank in range(2):
        (tmp_path / f"{rank}.txt").write_text(f"input {rank}")
    said: list[str] = []
    with job() as running:
        nodes = running.discover_and_plan(cpu_per_shard=0.1, gpu_per_shard=2)
        assert len(set(nodes)) == 2
        running.provision(tmpfs_per_shard="16Mi")
        running.sync_code(code, excludes=["__pycache__"])
        running.sync_per_shard({0: tmp_path / "0.txt", 1: tmp_path / "1.txt"}, "datasets/in")
        running.run(["sh", "main.sh"])
        results = running.wait_until_complete(0.1, timeout=30, progress=said.append)
        assert [(it.rank, it.node, it.exit_code) for it in results] == [
            (0, nodes[0], 0),
            (1, nodes[1], 0),
        ]
        assert said[:2] == ["main.sh", "0 2 127.0.0.1,127.0.0.1 127.0.0.1"]
        assert running.logs(1).count("GPU-") == 2
        fetched = running.fetch("checkpoints/out", tmp_path / "out")
        assert [(it / "out").read_text() for it in fetched] == ["input 0", "input 1"]
    assert left(ada) == []


def test_a_job_whose_block_fails_leaves_nothing(job: Job, ada: CybernetClient) -> None:
    with pytest.raises(RuntimeError, match="agent"), job() as running:  # noqa: PT012 - it is the block that fails
        running.discover_and_plan()
        running.provision("16Mi")
        assert len(left(ada)) == 2
        raise RuntimeError("the agent gives up")
    assert left(ada) == []


def test_a_job_that_is_provisioned_in_part_is_taken_back(job: Job, ada: CybernetClient) -> None:
    other = {"workspace": named("agent-b", "node-1")}
    ada.call("workspace.create", other)
    ada.call("workspace.create", {"workspace": named("agent-c", "node-2")})
    with pytest.raises(QuotaExceeded), job() as running:  # noqa: PT012 - the plan has to come first
        running.discover_and_plan()
        running.provision("16Mi")
    assert {it["name"] for it in left(ada)} == {"agent-b", "agent-c"}


def test_each_shard_has_a_task_of_its_own(job: Job) -> None:
    with job() as running:
        running.discover_and_plan(strategy="most-free-capacity")
        running.provision("16Mi")
        running.run_parallel(["echo"], [["zero"], ["one"]])
        running.wait_until_complete(0.1, timeout=30, progress=lambda line: None)
        assert [running.logs(rank).strip() for rank in (0, 1)] == ["zero", "one"]
        with pytest.raises(ValueError, match="tasks and shards do not match: 1 and 2"):
            running.run_parallel(["echo"], [["zero"]])
        with pytest.raises(ValueError, match="rank 1: two tasks"):
            running.run_tasks([ShardTask(["a"], rank=1), ShardTask(["b"], rank=1)])
        with pytest.raises(ValueError, match="rank 5: there are 0 to 1"):
            running.run_tasks([ShardTask(["a"], rank=5), ShardTask(["b"], rank=1)])
        with pytest.raises(ValueError, match="rank 2"):
            running.sync_per_shard({2: "."})
        with pytest.raises(ValueError, match="rank -1"):
            running.logs(-1)
        with pytest.raises(ValueError, match="rank 2"):
            running.fetch("logs", ".", ranks=[2])
        with pytest.raises(RuntimeError, match="has its workspaces already"):
            running.discover_and_plan()
        running.run_tasks(
            [
                ShardTask(["sh", "-c", "exit $CODE"], {"CODE": "3"}, rank=1, tag="again"),
                ShardTask(["true"], rank=0, tag="again"),
            ]
        )
        with pytest.raises(JobFailed, match=r"1 of 2 shards failed: rank 1 on \S+: 3") as caught:
            running.wait_until_complete(0.1, timeout=30, progress=lambda line: None)
        assert [it.exit_code for it in caught.value.results] == [0, 3]
        running.run(["tail", "-f", "/dev/null"], tag="endless")
        with pytest.raises(TimeoutError, match=r"\[0, 1\]"):
            running.wait_until_complete(0.1, timeout=0, progress=lambda line: None)


def test_a_job_that_fills_its_memory_fails_and_leaves_nothing(
    job: Job, ada: CybernetClient
) -> None:
    with pytest.raises(JobFailed), job(1) as running:  # noqa: PT012 - it has to be started first
        running.discover_and_plan()
        running.provision("1Mi")
        running.run(["cat", "/dev/zero"])
        running.wait_until_complete(0.1, timeout=30, progress=lambda line: None)
    assert left(ada) == []


def test_steps_out_of_order_are_refused(job: Job) -> None:
    with job() as running:
        with pytest.raises(RuntimeError, match="discover_and_plan"):
            running.provision()
        running.discover_and_plan()
        for step in (
            lambda: running.run(["true"]),
            lambda: running.sync_code("."),
            lambda: running.wait_until_complete(),
            lambda: running.logs(0),
            lambda: running.fetch("logs", "."),
        ):
            with pytest.raises(RuntimeError):
                step()


def test_a_job_goes_where_no_other_workspace_has_the_gpus(job: Job, ada: CybernetClient) -> None:
    for node in ("node-1", "node-3"):
        taken = named(f"agent-{node}", node, gpu={"reserve": 4, "cordon_node": False})
        ada.call("workspace.create", {"workspace": taken})
    with job(1) as running:
        assert running.discover_and_plan(gpu_per_shard=6) == ["node-2"]


def test_a_job_that_fits_nowhere_says_why(job: Job) -> None:
    with (
        job() as running,
        pytest.raises(NoPlace, match=r"fits on 0 nodes, and 2 are needed: node-1: 8 of 9"),
    ):
        running.discover_and_plan(gpu_per_shard=9)


async def test_an_app_counts_as_its_identitys(
    space_document: Document,
    cluster: HostsCluster,
    space: ServedSpace,
    ada: CybernetClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kvestigate.app.status.APP_STATUS_DIR", tmp_path)
    gate = Gate(
        load(changed("quotas.max_active_workspaces_per_identity", 1, space_document)), "ada"
    )
    part = {"node": "node-1", "cordon_node": False, "storage": {"tmpfs_size": "16Mi"}}
    one, other = (
        parse_app(
            to_yaml(
                {
                    "app": {
                        "metadata": {"name": name},
                        "target": "workspace",
                        "command": ["sleep", "1000"],
                        "workspace": part,
                    }
                }
            )
        )
        for name in ("agent-one", "agent-other")
    )
    access = cluster.access()
    made = await gate.run(UP, acting(access), AppOptions(one))
    assert not made.failed
    with pytest.raises(Exceeded) as caught:
        await gate.run(UP, acting(access), AppOptions(other))
    assert caught.value.reason == "quotas.max_active_workspaces_per_identity"
    assert not (await gate.run(UP, acting(access), AppOptions(one))).changes_anything
    with pytest.raises(Conflict, match="in the name of research-agents/ada"):
        await DOWN.run(acting(access), AppOptions(one))
    with pytest.raises(NoSuchThing):
        await asyncio.to_thread(ada.call, "workspace.ps", {"workspace": named("agent-one")})
    assert not (await gate.run(DOWN, acting(access), AppOptions(one))).failed
    assert recorded(space_document)[-1]["quota"]["workspaces"] == 0


@pytest.mark.parametrize(
    ("name", "offset", "said"),
    [
        ("part", 5, "there is no part before"),
        ("short", 5, "the part before is not all there"),
        ("link", 1, "there is no part before"),
        ("away/x", 1, "leads out of the workspace"),
        ("../x", 1, "leads out of the directory"),
    ],
)
def test_a_part_goes_on_where_the_one_before_ends(
    ada: CybernetClient, name: str, offset: int, said: str
) -> None:
    workspace = named("agent-a")
    ada.call("workspace.create", {"workspace": workspace})
    there = archive(("short", "abc"), ("link", "->short"), ("away", "->../.."))
    ada.call("workspace.sync", {"workspace": workspace, "archive": there})
    part = {"workspace": workspace, "archive": archive((name, "more")), "offset": offset}
    with pytest.raises(CybernetError, match=said):
        ada.call("workspace.sync", part)


def test_the_operator_sees_who_holds_what_and_the_ledger_is_put_right(
    cluster: HostsCluster, space_document: Document, ada: CybernetClient, tmp_path: Path
) -> None:
    config = tmp_path / "space.yaml"
    config.write_text(to_yaml(space_document))
    ada.call("workspace.create", {"workspace": named("agent-a")})
    ada.call("workspace.create", {"workspace": named("agent-b")})
    shown = cluster.run("cybernet", "status", "--config", str(config))
    assert "agent-a" in shown
    assert "repaired" not in shown
    meant = ("--apply", "--i-understand-this-modifies-hosts")
    by_hand = tmp_path / "w.yaml"
    by_hand.write_text(to_yaml({"workspace": {"name": "agent-a", "node": "node-1"}}))
    cluster.run("workspace", "destroy", "--config", str(by_hand), *meant)
    told = cluster.run("cybernet", "status", "--config", str(config), "-o", "json")
    found = json.loads(told)
    assert [it["name"] for it in found["holdings"]] == ["agent-b"]
    assert found["usage"]["workspaces"] == 1
    assert found["repairs"] == [
        "workspace 'agent-a' on node 'node-1' was counted and is not there: it counts no longer"
    ]


async def test_a_node_that_was_cordoned_for_nothing_is_opened_again(
    cluster: HostsCluster, space_document: Document, tmp_path: Path
) -> None:
    """As it is after `kill -9` of a gateway between the cordon and the workspace's marker."""
    config = tmp_path / "space.yaml"
    config.write_text(to_yaml(space_document))
    wanted = "/opt/kvestigate-workspaces/agent-never"
    reason = cordon_reason(wanted, datetime.now(UTC) - timedelta(minutes=11))
    async with connect(cluster.access()) as api:
        await set_cordoned(api, "node-2", True, apply=True, reason=reason)
        told = cluster.run("cybernet", "status", "--config", str(config), "-o", "json")
        assert json.loads(told)["repairs"] == [
            f"node node-2 is uncordoned: it was cordoned for workspace {wanted}, which was never "
            "made"
        ]
        assert not await is_cordoned(api, "node-2")


def test_a_workspace_that_was_abandoned_is_removed(
    cluster: HostsCluster, space_document: Document, ada: CybernetClient
) -> None:
    """Unless something runs in it, or its agent has just asked about it."""
    for name in ("agent-idle", "agent-busy", "agent-used"):
        ada.call("workspace.create", {"workspace": named(name)})
    busy = {"workspace": named("agent-busy"), "tag": "t", "command": ["sleep", "600"]}
    ada.call("workspace.run", busy)

    async def passed() -> tuple[str, ...]:
        loaded = load(changed("leases", {"ttl": "1h"}, space_document))
        book = Book(cluster.access(), "default", loaded.space.metadata.name)
        async with book.opened() as page:
            entries = await page.read()
            assert entries is not None
            old = {it: structs.replace(entry, renewed=0.0) for it, entry in entries.items()}
            assert await page.write(old)
        await asyncio.to_thread(ada.call, "workspace.ps", {"workspace": named("agent-used")})
        audit = AuditLog(loaded.space.audit)
        opened = Gateway(loaded.space, loaded.operations, cluster.access(), audit, WallClock())
        try:
            return (await opened.upkeep()).expired
        finally:
            await opened.close()

    assert asyncio.run(passed()) == (
        "workspace 'agent-idle' of research-agents/ada on node 'node-1' "
        "was abandoned and is removed",
    )
    left = {it["name"] for it in ada.call("workspace.status")["workspaces"]}
    assert left == {"agent-busy", "agent-used"}
    last = recorded(space_document)[-2]
    assert (last["operation"], last["identity"], last["remote"]) == (
        "workspace.destroy",
        "ada",
        "lease",
    )
