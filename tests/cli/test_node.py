"""Nodes and Deployments change when both flags say so, and not before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.client.connect import connect
from kvestigate.cluster.assembly import process
from kvestigate.cluster.assembly.directory import ClusterDirectory, clusters_directory, known
from kvestigate.kube import builtins
from tests.cli.conftest import Invoke

FLAG = "--i-understand-this-modifies-cluster"

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        },
    },
}


STATEFUL_SET: dict[str, Any] = {**DEPLOYMENT, "kind": "StatefulSet", "metadata": {"name": "db"}}


@pytest.fixture
def cluster(home: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The kubeconfig of a cluster of one simulated node with a Deployment."""
    state = home / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    up = invoke("up", "--nodes", "1", "--host", "simulated")
    assert up.code == 0, up.err
    directory = clusters_directory({"XDG_STATE_HOME": str(state)})
    config = ClusterDirectory(directory, "default").kubeconfig
    try:
        asyncio.run(_load(config))
        yield config
    finally:
        for each in known(directory):
            process.stop(each)


async def _load(config: Path) -> None:
    async with connect(resolve(AccessOptions(kubeconfig=str(config)), {}, None)) as api:
        await api.create(builtins.resource("deployments"), DEPLOYMENT)
        await api.create(builtins.resource("statefulsets"), STATEFUL_SET)


def test_cordon_and_uncordon(invoke: Invoke, cluster: Path) -> None:
    preview = invoke("node", "cordon", "node-1")
    assert (preview.code, preview.out) == (0, "would cordon node node-1\n")
    assert "nothing was changed" in preview.err

    done = invoke("node", "cordon", "node-1", FLAG)
    assert (done.code, done.out, done.err) == (0, "node node-1 is cordoned\n", "")
    again = invoke("node", "cordon", "node-1", "--apply", FLAG)
    assert (again.code, again.out) == (0, "node node-1 is already cordoned\n")
    barred = json.loads(invoke("plan", "--cpu", "1", "-o", "json").out)["nodes"][0]["barred"]
    assert barred == "cordoned"

    still = invoke("node", "uncordon", "node-1", "--apply")
    assert (still.code, still.out) == (2, "would uncordon node node-1\n")
    done = invoke("node", "uncordon", "node-1", FLAG, "-o", "json")
    assert json.loads(done.out) == {
        "node": "node-1",
        "before": True,
        "after": False,
        "applied": True,
        "reason_before": "",
    }
    assert invoke("node", "uncordon", "node-1", FLAG).out == "node node-1 is already uncordoned\n"
    assert invoke("node", "uncordon", "node-1").code == 0  # there is nothing to confirm
    missing = invoke("node", "cordon", "nde-1", FLAG)
    assert (missing.code, "did you mean 'node-1'?" in missing.err) == (5, True)


@pytest.mark.usefixtures("cluster")
def test_scale(invoke: Invoke) -> None:
    where = "deployment web in namespace default"
    for flags, code in (((), 0), (("--apply",), 2), ((FLAG,), 0)):
        preview = invoke("scale", "web", "3", *flags)
        assert (preview.code, preview.out) == (code, f"would scale {where}: 1 -> 3 replicas\n")
    done = invoke("scale", "web", "3", "--apply", FLAG)
    assert (done.code, done.out) == (0, f"{where}: 1 -> 3 replicas\n")
    quiet = invoke("scale", "web", "0", "--apply", FLAG, "-o", "json")
    assert (json.loads(quiet.out)["before"], json.loads(quiet.out)["after"]) == (3, 0)
    same = invoke("scale", "web", "0", "--apply", FLAG)
    assert same.out == f"{where} already has 0 replicas\n"
    assert invoke("scale", "web", "0").code == 0  # there is nothing to confirm
    missing = invoke("scale", "wbe", "1")
    assert (missing.code, "did you mean 'web'?" in missing.err) == (5, True)
    other = invoke("scale", "statefulset/web", "1")
    assert (other.code, 'statefulsets.apps "web" not found' in other.err) == (5, True)
    none = invoke("scale", "pod/web", "1")
    assert (none.code, "a pod cannot be scaled" in none.err) == (2, True)
    same = invoke("scale", "statefulset/db", "2", "--apply", FLAG)
    assert same.out == "statefulset db in namespace default: 1 -> 2 replicas\n"
    by_name = invoke("scale", "db", "3", "--apply", FLAG)
    assert by_name.out == "statefulset db in namespace default: 2 -> 3 replicas\n"
    for wrong in ("-1", "-12"):
        negative = invoke("scale", "web", wrong)
        assert (negative.code, "option" in negative.err) == (2, False)
        assert f"{wrong} is not" in negative.err or f"'{wrong}' is not" in negative.err
    assert invoke("scale", "web", "-n", "other", "1").code == 5
    assert invoke("scale", "web", "many").code == 2
