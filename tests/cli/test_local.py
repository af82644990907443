"""`up`, `status` and `down`: a cluster on this machine from start to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvestigate.cluster.assembly import process
from kvestigate.cluster.assembly.clusters import up
from kvestigate.cluster.assembly.directory import ClusterDirectory, Shape, clusters_directory, known
from tests.cli.conftest import Invoke

SIMULATED = ("--host", "simulated", "-o", "json")


@pytest.fixture(autouse=True)
def state(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where clusters are kept; none is left running."""
    directory = home / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(directory))
    yield directory
    for cluster in known(clusters_directory({"XDG_STATE_HOME": str(directory)})):
        process.stop(cluster)


def own_clusters(invoke: Invoke) -> list[Any]:
    """Not the strays: tests that have just ended may have left some, for seconds."""
    clusters = json.loads(invoke("status", "-o", "json").out)["clusters"]
    return [cluster for cluster in clusters if not cluster["stray_pid"]]


def test_a_cluster_comes_up_keeps_what_is_in_it_and_goes(invoke: Invoke, home: Path) -> None:
    new = invoke("up", "--name", "lab", "--nodes", "2", "--host", "directory", "-o", "json")
    assert new.code == 0, new.err
    started = json.loads(new.out)
    assert started["context"] == "kvestigate-lab"
    assert not started["already"]
    assert started["host"] == "directory"

    config = home / ".kube" / "config"
    assert yaml.safe_load(config.read_text())["current-context"] == "kvestigate-lab"
    seen = invoke("debug", "api", "/api/v1/nodes", "-o", "json")
    body = json.loads(seen.out)["body"]
    nodes = json.loads(body) if isinstance(body, str) else body
    assert [node["metadata"]["name"] for node in nodes["items"]] == ["node-1", "node-2"]
    uids = [node["metadata"]["uid"] for node in nodes["items"]]

    again = invoke("up", "--name", "lab", "-o", "json")
    assert json.loads(again.out)["already"]
    larger = invoke("up", "--name", "lab", "--nodes", "5")
    assert (larger.code, "already running with nodes 2 instead of 5" in larger.err) == (2, True)
    assert "running" in invoke("status").out
    [listed] = own_clusters(invoke)
    assert (listed["name"], listed["running"]) == ("lab", True)
    other = invoke("down")
    assert (other.code, "hint: choose an existing cluster with --name: lab" in other.err) == (
        5,
        True,
    )

    assert invoke("down", "--name", "lab").code == 0
    assert "stopped" in invoke("status").out
    away = invoke("pods")
    assert (away.code, away.err.splitlines()[1:]) == (
        3,
        ['hint: the cluster "lab" is stopped: kvestigate up --name lab'],
    )
    back = json.loads(invoke("up", "--name", "lab", "-o", "json").out)
    assert (back["url"], back["nodes"]) == (started["url"], 2)
    seen = json.loads(invoke("debug", "api", "/api/v1/nodes", "-o", "json").out)["body"]
    nodes = json.loads(seen) if isinstance(seen, str) else seen
    assert [node["metadata"]["uid"] for node in nodes["items"]] == uids

    assert invoke("down", "--name", "lab", "--delete").code == 0
    assert own_clusters(invoke) == []
    assert yaml.safe_load(config.read_text())["contexts"] == []


def test_without_a_kubeconfig_the_running_cluster_is_meant(invoke: Invoke, home: Path) -> None:
    only = json.loads(invoke("up", "--name", "lab", "--nodes", "1", *SIMULATED).out)["url"]
    (home / ".kube" / "config").unlink()
    seen = invoke("debug", "context", "-o", "json")
    assert seen.code == 0, seen.err
    assert json.loads(seen.out)["server"] == only

    default = json.loads(invoke("up", "--nodes", "1", *SIMULATED).out)["url"]
    (home / ".kube" / "config").unlink()
    assert json.loads(invoke("debug", "context", "-o", "json").out)["server"] == default


def test_the_demo_runs_a_job_and_shows_what_it_said(invoke: Invoke) -> None:
    outcome = invoke("demo", "-o", "json")
    assert outcome.code == 0, outcome.err
    seen = json.loads(outcome.out)
    shown = seen["demonstration"]
    assert [node["ready"] for node in shown["nodes"]] == [True] * 8
    assert [(line["node"], line["text"]) for line in shown["lines"]][:2] == [
        ("node-01", "8 GPUs  25.0% busy  174.4/764.7 GiB  0.49 kW  35 C"),
        ("node-02", "8 GPUs  12.5% busy  157.2/764.7 GiB  0.59 kW  59 C"),
    ]
    subjects = {finding["subject"]["name"].partition("-")[0] for finding in seen["findings"]}
    assert {"gateway", "pretrain"} <= subjects
    again = invoke("demo")
    assert "a job asked nvidia-smi on every node" in again.out
    assert again.out.count(" GPUs  ") == 8
    assert "CRITICAL Service prd-r6000-nest/gateway" in again.out
    assert "try: kvestigate --context kvestigate-demo logs gpu-exporter" in again.out


def test_scenarios_can_be_looked_at_before_they_are_used(invoke: Invoke, home: Path) -> None:
    assert "gpu-fleet" in invoke("scenario", "list").out
    rows = json.loads(invoke("scenario", "list", "-o", "json").out)["scenarios"]
    assert {row["name"]: row["nodes"] for row in rows}["gpu-fleet"] == 8
    shown = invoke("scenario", "show", "broken-app").out
    (home / "mine.yaml").write_text(shown.replace("name: broken-app", "name: mine"))
    assert "name: mine" in invoke("scenario", "show", "mine.yaml").out


def test_a_cluster_is_made_from_a_scenario(invoke: Invoke, home: Path) -> None:
    (home / "small.yaml").write_text(
        "apiVersion: kvestigate.dev/v1\nkind: Scenario\nmetadata: {name: small}\n"
        "spec: {summary: x, nodes: [{name: a, host: simulated}, {name: b, host: simulated}]}\n"
    )
    new = invoke("up", "--scenario", "small.yaml", "-o", "json")
    assert new.code == 0, new.err
    started = json.loads(new.out)
    assert (started["nodes"], started["host"], started["scenario"]) == (2, "simulated", "small")
    assert "small" in invoke("status").out
    again = invoke("up", "--scenario", "small.yaml", "-o", "json")
    assert json.loads(again.out)["already"], again.err
    other = invoke("up", "--scenario", "pdb-block")
    assert other.code == 2
    assert "was not made from this scenario" in other.err


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("up", "--scenario", "nope"), 2, 'scenario "nope" does not exist'),
        (("up", "--scenario", "big", "--nodes", "3"), 2, "leave out --nodes"),
        (("scenario", "show", "./none.yaml"), 2, "./none.yaml: cannot be read"),
        (("down", "--name", "nobody"), 5, 'error: cluster "nobody" does not exist'),
        (
            ("up", "--name", "Not_A_Name"),
            2,
            'error: --name: "Not_A_Name" is not a valid cluster name',
        ),
        (("up", "--nodes", "0"), 2, "0"),
        (("up", "--host", "vm"), 2, "vm"),
    ],
)
def test_a_mistake_is_named(invoke: Invoke, args: tuple[str, ...], code: int, message: str) -> None:
    outcome = invoke(*args)
    assert outcome.code == code
    assert message in outcome.err


def test_a_cluster_that_cannot_start_says_why(invoke: Invoke, state: Path) -> None:
    directory = clusters_directory({"XDG_STATE_HOME": str(state)})
    cluster = ClusterDirectory(directory, "broken")
    cluster.plane.mkdir(parents=True)
    (cluster.plane / "pki").write_text("not a directory")
    outcome = invoke("up", "--name", "broken")
    assert outcome.code == 1
    assert 'cluster "broken" did not start' in outcome.err


@pytest.mark.parametrize(
    "args", [("up",), ("up", "--scenario", "mig"), ("demo",), ("down",), ("status",)]
)
def test_a_state_directory_that_cannot_be_used_is_named(
    invoke: Invoke, home: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    (home / "taken").write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "taken"))
    outcome = invoke(*args)
    if args == ("status",):
        assert (outcome.code, own_clusters(invoke)) == (0, [])
        return
    assert outcome.code == 2
    assert f"error: {home}/taken/kvestigate/clusters" in outcome.err
    assert "cannot be used: Not a directory" in outcome.err
    assert "hint: set XDG_STATE_HOME to a writable directory" in outcome.err


def test_a_cluster_whose_context_nobody_can_keep_is_reached_by_its_own_file(
    invoke: Invoke, home: Path, state: Path
) -> None:
    (home / ".kube").write_text("a file")
    outcome = invoke("up", "--name", "lab", "--nodes", "1", *SIMULATED)
    assert outcome.code == 3
    assert f"cannot add the cluster's context: {home}/.kube/config: " in outcome.err
    own = state / "kvestigate" / "clusters" / "lab" / "plane" / "admin.kubeconfig"
    assert f"the cluster is running: use --kubeconfig {own}" in outcome.err
    assert invoke("namespaces", "--kubeconfig", str(own)).code == 0


def test_two_who_start_the_same_cluster_at_once_both_have_it(state: Path, home: Path) -> None:
    environ = {"XDG_STATE_HOME": str(state), "KUBECONFIG": str(home / "config")}
    shape = Shape(nodes=1, host="simulated")
    with ThreadPoolExecutor() as both:
        first, second = both.map(lambda _: up(environ, "lab", shape), range(2))
    assert first.url == second.url
    assert sorted([first.already, second.already]) == [False, True]
    assert ClusterDirectory(clusters_directory(environ), "lab").read().pid > 0


def test_a_start_that_is_given_up_leaves_nothing_running(state: Path, home: Path) -> None:
    environ = {"XDG_STATE_HOME": str(state), "KUBECONFIG": str(home / "config")}

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        up(environ, "lab", Shape(nodes=1, host="simulated"), waiting=interrupted)
    assert not ClusterDirectory(clusters_directory(environ), "lab").is_running()
    assert not up(environ, "lab", None).already
