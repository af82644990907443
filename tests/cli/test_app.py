"""Apps from the command line, on a cluster whose pods and hosts are real processes."""

from __future__ import annotations

import asyncio
import io
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.connect import connect
from tests.bed import Bed
from tests.cli.conftest import MEANT, Invoke, Outcome
from tests.hosts_cluster import HostsCluster

EXAMPLES = Path(__file__).parents[2] / "examples" / "apps"
On = tuple[str, str]
Steps = list[tuple[str, str]]


@pytest.fixture(autouse=True)
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "recorded"
    monkeypatch.setattr("kvestigate.app.status.APP_STATUS_DIR", directory)
    return directory


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    started = HostsCluster(tmp_path_factory.mktemp("apps"))
    yield started
    started.close()


@pytest.fixture
def apps(tmp_path: Path) -> Path:
    """The examples, to be changed."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "apps"))


@pytest.fixture
def on(cluster: HostsCluster) -> tuple[str, str]:
    return ("--kubeconfig", str(cluster.kubeconfig))


def steps(outcome: Outcome) -> Steps:
    assert outcome.code == 0, outcome
    return [(it["action"], it["subject"]) for it in json.loads(outcome.out)["steps"]]


def finished(cluster: HostsCluster, job: str) -> None:
    """Wait until a Job has done its work."""

    async def wait() -> None:
        async with connect(cluster.access()) as api:
            await Bed(api).until("jobs", lambda found: found[job]["status"].get("succeeded") == 4)

    asyncio.run(wait())


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# Without a cluster.


def test_render(invoke: Invoke, apps: Path) -> None:
    rendered = invoke("app", "render", str(apps / "batch.yaml"))
    assert rendered.code == 0
    assert rendered.out.startswith("apiVersion: batch/v1\nkind: Job\n")
    listed = json.loads(invoke("app", "render", str(apps / "web-service.yaml"), "-o", "json").out)
    assert [it["kind"] for it in listed["items"]] == ["ConfigMap", "Service", "Deployment"]
    [shard] = json.loads(invoke("app", "render", str(apps / "trainer.yaml"), "-o", "json").out)
    assert shard["workspace"]["gpu"] == {"reserve": 2}
    assert shard["launch"]["env"] == {"OMP_NUM_THREADS": "16"}


def test_standard_input(invoke: Invoke, apps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(apps)
    data = (apps / "web-service.yaml").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    piped = invoke("app", "render", "-")
    assert (piped.code, piped.out) == (0, invoke("app", "render", "web-service.yaml").out)


@pytest.mark.parametrize("words", [("render",), ("plan",), ("status",), ("up", *MEANT)])
def test_mistakes_are_told_before_anything_is_asked(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...]
) -> None:
    path = tmp_path / "app.yaml"
    path.write_text("app:\n  metadata: {name: web}\n  target: pods\n  k8s: {imag: x}\n")
    refused = invoke("app", words[0], str(path), *words[1:])
    assert refused.code == 2
    assert refused.out == ""
    assert "app.yaml:3: target: 'pods' is none of workspace, k8s, auto" in refused.err
    assert "app.yaml:4: k8s.imag: no such field; did you mean k8s.image?" in refused.err


def test_another_namespace_is_refused(invoke: Invoke, apps: Path) -> None:
    refused = invoke("app", "render", str(apps / "batch.yaml"), "-n", "other")
    assert refused.code == 2
    assert "is for namespace 'default', and --namespace says 'other'" in refused.err


def test_nothing_recorded(invoke: Invoke, apps: Path) -> None:
    status = invoke("app", "status", str(apps / "batch.yaml"))
    assert status.code == 5
    assert "App default/nightly-report was never brought up from here" in status.err
    assert "kvestigate app plan" in status.err
    assert invoke("app", "list").out == "no App was brought up from here\n"


# In pods.


def test_a_service_from_plan_to_nothing(on: On, invoke: Invoke, apps: Path) -> None:
    spec = apps / "web-service.yaml"
    plan = invoke("app", "plan", str(spec), *on)
    assert (plan.code, plan.err) == (0, "")
    assert plan.out.startswith("App default/web-service, would do: 3 create\n")

    unconfirmed = invoke("app", "up", str(spec), *on)
    assert unconfirmed.code == 0
    assert "would do: 3 create" in unconfirmed.out
    assert "add --apply --i-understand-this-modifies-cluster" in unconfirmed.err
    assert invoke("app", "status", str(spec)).code == 5

    assert steps(invoke("app", "up", str(spec), *on, *MEANT, "-o", "json")) == [
        ("create", "ConfigMap web-service-config"),
        ("create", "Service web-service"),
        ("create", "Deployment web-service"),
    ]
    again = invoke("app", "up", str(spec), *on)
    assert (again.code, again.err) == (0, "")  # there is nothing to confirm
    assert again.out.startswith("App default/web-service: nothing to do\n")

    changed(spec, "replicas: 2", "replicas: 3")
    drift = json.loads(invoke("app", "diff", str(spec), *on, "-o", "json").out)
    assert drift["app"]["status"] == "drifted"
    assert drift["app"]["changes"] == [{"path": "k8s.replicas", "before": "2", "after": "3"}]
    [deployment] = [it for it in drift["plan"]["steps"] if it["action"] == "change"]
    assert deployment["changes"] == [{"path": "spec.replicas", "before": "2", "after": "3"}]

    changed(spec, "  shared_config_files:\n    - local: config/index.html\n", "")
    done = steps(invoke("app", "up", str(spec), *on, *MEANT, "-o", "json"))
    assert ("delete", "ConfigMap web-service-config") in done
    assert ("change", "Deployment web-service") in done
    assert "in-sync" in invoke("app", "diff", str(spec), *on).out

    listed = json.loads(invoke("app", "list", "-o", "json").out)["apps"]
    assert [(it["name"], it["phase"], it["target"]) for it in listed] == [
        ("web-service", "up", "k8s")
    ]
    assert json.loads(invoke("app", "list", "-n", "other", "-o", "json").out) == {"apps": []}

    assert invoke("app", "down", str(spec), *on).code == 0
    assert steps(invoke("app", "down", str(spec), *on, *MEANT, "-o", "json")) == [
        ("delete", "Deployment web-service"),
        ("delete", "Service web-service"),
    ]
    assert "phase:       down" in invoke("app", "status", str(spec)).out
    nothing = invoke("app", "down", str(spec), *on, *MEANT)
    assert (nothing.code, "nothing exists" in nothing.out) == (0, True)


def test_another_version_of_work_takes_the_place_of_the_one_before(
    on: On, invoke: Invoke, apps: Path
) -> None:
    spec = apps / "batch.yaml"
    [(_, first)] = steps(invoke("app", "up", str(spec), *on, *MEANT, "-o", "json"))
    changed(spec, "monday", "tuesday")
    assert {
        action for action, _ in steps(invoke("app", "up", str(spec), *on, *MEANT, "-o", "json"))
    } == {
        "create",
        "delete",
    }
    [(action, second)] = steps(invoke("app", "down", str(spec), *on, *MEANT, "-o", "json"))
    assert (action, second != first) == ("delete", True)


def test_ranks_find_each_other(on: On, invoke: Invoke, apps: Path, cluster: HostsCluster) -> None:
    spec = apps / "distributed.yaml"
    made = steps(invoke("app", "up", str(spec), *on, *MEANT, "-o", "json"))
    job = made[1][1].removeprefix("Job ")
    finished(cluster, job)
    said = invoke("logs", f"job/{job}", *on).out
    for rank in range(4):
        assert f"rank {rank} of 4, first is {job}-0.allreduce-peers" in said
    assert invoke("app", "down", str(spec), *on, *MEANT).code == 0


def test_a_part_that_the_server_refuses(on: On, invoke: Invoke, apps: Path) -> None:
    spec = apps / "batch.yaml"
    changed(spec, "namespace: default", "namespace: nowhere")
    refused = invoke("app", "up", str(spec), *on, *MEANT)
    assert refused.code == 1
    assert "nothing was done, because a step would fail" in refused.out
    assert 'namespaces "nowhere" not found' in refused.out
    assert invoke("app", "status", str(spec)).code == 5


def test_fields_of_others(on: On, invoke: Invoke, apps: Path) -> None:
    spec = apps / "web-service.yaml"
    assert invoke("app", "up", str(spec), *on, *MEANT).code == 0
    assert invoke("scale", "web-service", "3", *on, *MEANT).code == 0
    refused = invoke("app", "up", str(spec), *on, *MEANT)
    assert refused.code == 6
    assert "owns spec.replicas" in refused.out
    assert invoke("app", "up", str(spec), *on, *MEANT, "--force-conflicts").code == 0
    assert invoke("app", "down", str(spec), *on, *MEANT).code == 0


# On hosts.


@pytest.fixture
def trainer(apps: Path) -> Path:
    path = apps / "trainer.yaml"
    changed(path, "gpu-node-7", "node-1")
    changed(path, "mode: hybrid, tmpfs_size: 500G", "mode: disk")
    return path


@pytest.mark.workflow
def test_a_trainer_from_plan_to_nothing(on: On, invoke: Invoke, trainer: Path) -> None:
    done = invoke("app", "up", str(trainer), *on, *MEANT, "-o", "json")
    outcome = json.loads(done.out)
    assert (outcome["target"], outcome["applied"]) == ("workspace", True)
    assert outcome["reasons"] == [
        "workspace.node: node-1",
        "resources.gpu: 2",
        "lifecycle: interactive",
    ]
    made = steps(done)
    workspace = "workspace trainer-01 on node-1"
    code = "./code in code/ of trainer-01 on node-1"
    assert made[:2] == [("create", workspace), ("sync", code)]
    first = made[2][1]
    assert invoke("app", "up", str(trainer), *on).out.startswith(
        "App research/trainer-01: nothing to do\n"
    )

    changed(trainer, 'OMP_NUM_THREADS: "16"', "OMP_NUM_THREADS: 8")
    again = steps(invoke("app", "up", str(trainer), *on, *MEANT, "-o", "json"))
    assert again[:3] == [("unchanged", workspace), ("unchanged", code), ("stop", first)]
    assert again[3][0] == "start"
    second = again[3][1]
    assert second != first

    (trainer.parent / "code" / "more.py").write_text("x = 1\n")
    assert steps(invoke("app", "up", str(trainer), *on, *MEANT, "-o", "json")) == [
        ("unchanged", workspace),
        ("sync", code),
        ("stop", second),
        ("start", second),
    ]

    changed(trainer, "node-1", "node-2")
    moved = invoke("app", "up", str(trainer), *on, *MEANT)
    assert moved.code == 6
    assert "is on node-1 already, and would be on node-2" in moved.err
    # What was applied is taken down, whatever the file says by now.
    assert steps(invoke("app", "down", str(trainer), *on, *MEANT, "-o", "json")) == [
        ("delete", workspace)
    ]
    assert "phase:       down" in invoke("app", "status", str(trainer)).out


def test_a_workspace_of_somebody_else(
    on: On, invoke: Invoke, trainer: Path, tmp_path: Path
) -> None:
    config = tmp_path / "workspace.yaml"
    config.write_text("workspace: {name: trainer-01, node: node-1, storage: {mode: disk}}")
    understood = ("--apply", "--i-understand-this-modifies-hosts")
    where = ("--config", str(config), *on)
    assert invoke("workspace", "create", *where, *understood).code == 0
    refused = invoke("app", "up", str(trainer), *on, *MEANT)
    assert refused.code == 6
    assert "belongs to an operator" in refused.out
    assert invoke("app", "down", str(trainer), *on, *MEANT).out.startswith(
        "App research/trainer-01: nothing exists"
    )
    assert invoke("workspace", "destroy", *where, *understood).code == 0


DISTRIBUTED = """
app:
  metadata: {name: shards}
  command: [sh, -c, 'cat "$APP_CONFIG_DIR/greeting"; echo "rank $DIST_RANK on $DIST_PEERS"']
  lifecycle: batch
  resources: {gpu: 1}
  workspace: {storage: {mode: disk}}
  shared_config_files: [{name: greeting, content: hello from}]
  distributed: {shards: 2, nodes: [node-1]}
"""


@pytest.mark.workflow
def test_shards(on: On, invoke: Invoke, tmp_path: Path) -> None:
    spec = tmp_path / "shards.yaml"
    spec.write_text(DISTRIBUTED)
    outcome = invoke("app", "up", str(spec), *on, *MEANT, "-o", "json")
    assert outcome.code == 0, outcome
    made: list[dict[str, Any]] = json.loads(outcome.out)["steps"]
    assert [it["action"] for it in made] == ["create", "sync", "start"] * 2
    first, second = made[0]["reason"], made[3]["reason"]
    assert first.startswith("GPU ")
    assert first != second  # on one node, and each with a GPU of its own

    config = tmp_path / "workspace.yaml"
    config.write_text("workspace: {name: shards-0, node: node-1, storage: {mode: disk}}")
    tag = made[2]["subject"].split()[1]
    where = ("--config", str(config), *on)
    said = invoke("workspace", "logs", tag, "-f", *where)
    found = re.fullmatch(r"hello fromrank 0 on ([0-9.]+),([0-9.]+)\n", said.out)
    assert found is not None, said
    assert found[1] == found[2]

    changed(spec, "shards: 2", "shards: 1")
    fewer = steps(invoke("app", "up", str(spec), *on, *MEANT, "-o", "json"))
    assert [action for action, _ in fewer] == ["unchanged", "unchanged", "start", "delete"]
    assert steps(invoke("app", "down", str(spec), *on, *MEANT, "-o", "json")) == [
        ("delete", "workspace shards-0 on node-1")
    ]


def test_nothing_is_started_while_a_workspace_is_missing(
    on: On, invoke: Invoke, tmp_path: Path
) -> None:
    spec = tmp_path / "greedy.yaml"
    spec.write_text(
        "app: {metadata: {name: greedy}, command: [sleep, '60'], resources: {gpu: 5}, "
        "workspace: {node: node-1, storage: {mode: disk}}, distributed: {shards: 2}}"
    )
    # Each of the two finds its 5 of 8 GPUs, until the other one has them.
    assert invoke("app", "plan", str(spec), *on).code == 0
    done = invoke("app", "up", str(spec), *on, *MEANT, "-o", "json")
    assert done.code == 1
    assert sorted(it["action"] for it in json.loads(done.out)["steps"]) == [
        "create",
        "fail",
        "skip",
        "skip",
    ]
    assert "phase:       failed" in invoke("app", "status", str(spec)).out
    assert len(steps(invoke("app", "down", str(spec), *on, *MEANT, "-o", "json"))) == 1


def test_work_that_has_ended_is_left_alone(on: On, invoke: Invoke, tmp_path: Path) -> None:
    spec = tmp_path / "once.yaml"
    spec.write_text(
        "app: {metadata: {name: once}, command: [sh, -c, exit 3], lifecycle: batch, "
        "workspace: {node: node-2, storage: {mode: disk}}}"
    )
    [_, (_, run)] = steps(invoke("app", "up", str(spec), *on, *MEANT, "-o", "json"))
    again = json.loads(invoke("app", "plan", str(spec), *on, "-o", "json").out)["steps"][1]
    assert (again["action"], again["subject"]) == ("unchanged", run)
    assert again["reason"] in ("", "ended with exit code 3")  # it may be running still
    assert invoke("app", "down", str(spec), *on, *MEANT).code == 0


def test_a_node_that_is_not_there(on: On, invoke: Invoke, trainer: Path) -> None:
    changed(trainer, "node-1", "node-9")
    refused = invoke("app", "plan", str(trainer), *on)
    assert refused.code != 0
    assert "node-9" in refused.err


def test_a_configured_cyberspace_is_the_gate_by_default(
    on: On, invoke: Invoke, apps: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = str(apps / "web-service.yaml")
    free = invoke("app", "up", spec, *on, *MEANT)
    assert "outside of any cyberspace: no policy or quota is checked" in free.err
    assert invoke("app", "down", spec, *on, *MEANT, "-o", "json").code == 0

    monkeypatch.setenv("KVESTIGATE_CYBERSPACE", str(tmp_path / "none.yaml"))
    for command in ("plan", "up", "down", "diff"):
        gated = invoke("app", command, spec, *on)
        assert (gated.code, "none.yaml: cannot read the file" in gated.err) == (2, True)
        assert invoke("app", command, spec, "--no-cyberspace", *on).code == 0
    monkeypatch.delenv("KVESTIGATE_CYBERSPACE")

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "kvestigate").mkdir()
    (tmp_path / "kvestigate" / "cyberspace.yaml").write_text("cyberspace: 7")
    refused = invoke("app", "plan", spec, *on)
    assert (refused.code, "kvestigate/cyberspace.yaml" in refused.err) == (2, True)
    both = invoke("app", "plan", spec, "--no-cyberspace", "--cyberspace", "x", *on)
    assert (both.code, "exclude each other" in both.err) == (2, True)
