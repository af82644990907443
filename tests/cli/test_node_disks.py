"""`kvestigate down` and `up`: what is on the disks of nodes is kept, what was in memory is not."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvestigate.client.connect import connect
from tests.bed import Bed
from tests.cli.conftest import Invoke, Outcome
from tests.hosts_cluster import HostsCluster

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can mount on the hosts that are made here"
)

MEANT = ("--apply", "--i-understand-this-modifies-hosts")
ROOT = "/opt/kvestigate-workspaces"
CLAIM = {
    "metadata": {"name": "kept"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
}
VOLUMES = {
    "host": {"hostPath": {"path": "/data/kept", "type": "DirectoryOrCreate"}},
    "claim": {"persistentVolumeClaim": {"claimName": "kept"}},
}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostsCluster]:
    cluster = HostsCluster(tmp_path / "cluster", nodes=1, gpus=2)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    yield cluster
    cluster.close()
    assert not (tmp_path / "cluster" / "state" / "kvestigate" / "clusters" / "hosts").exists()


def ok(outcome: Outcome) -> str:
    assert outcome.code == 0, outcome.err + outcome.out
    return outcome.out


def described(home: Path, name: str, mode: str, **gpu: Any) -> str:
    storage = {"mode": mode} | ({} if mode == "disk" else {"tmpfs_size": "1M"})
    path = home / f"{name}.yaml"
    spec = {"name": name, "node": "node-1", "storage": storage, "gpu": gpu}
    path.write_text(yaml.safe_dump({"workspace": spec}))
    return str(path)


def ran(cluster: HostsCluster, name: str, script: str) -> None:
    """A pod with both volumes has run a script, and succeeded."""
    mounts = [{"name": volume, "mountPath": f"/{volume}"} for volume in VOLUMES]
    command = ["sh", "-c", script]
    container = {"name": "main", "image": "any", "command": command, "volumeMounts": mounts}
    spec = {
        "containers": [container],
        "volumes": [{"name": name, **volume} for name, volume in VOLUMES.items()],
        "restartPolicy": "Never",
        # Workspaces have cordoned the node.
        "tolerations": [{"operator": "Exists"}],
    }

    async def run() -> None:
        async with connect(cluster.access()) as api:
            bed = Bed(api)
            if "kept" not in await bed.all("persistentvolumeclaims"):
                await bed.create("persistentvolumeclaims", CLAIM)
            await bed.create("pods", {"metadata": {"name": name}, "spec": spec})
            pods = await bed.until(
                "pods",
                lambda pods: pods[name].get("status", {}).get("phase") in ("Succeeded", "Failed"),
            )
            assert pods[name]["status"]["phase"] == "Succeeded"

    asyncio.run(run())


def cordoned(cluster: HostsCluster) -> bool:
    async def ask() -> bool:
        async with connect(cluster.access()) as api:
            node = (await Bed(api).all("nodes"))["node-1"]
            return bool(node["spec"].get("unschedulable"))

    return asyncio.run(ask())


def test_disks_of_nodes_are_kept_and_a_cordon_ends_with_its_workspace(
    cluster: HostsCluster, home: Path, invoke: Invoke
) -> None:
    modes = ("disk", "hybrid", "all-tmpfs")
    configs = {mode: described(home, f"on-{mode}", mode, reserve=0) for mode in modes}
    for config in configs.values():
        ok(invoke("workspace", "create", "--config", config, *MEANT))
    for mode in modes:
        cluster.on_host(f"cd {ROOT}/on-{mode}; echo {mode} >code/file; echo lost >datasets/file")
    on_disk = ("--config", configs["disk"])
    ok(invoke("workspace", "run", *on_disk, "--tag", "lasting", *MEANT, "--", "sleep", "1000"))
    ran(cluster, "writer", "echo host >/host/file; echo claim >/claim/file")
    assert cordoned(cluster)

    cluster.restart()

    files = f"cd {ROOT}; cat on-disk/code/file on-disk/datasets/file on-hybrid/code/file"
    assert cluster.on_host(files).split() == ["disk", "lost", "hybrid"]
    assert cluster.on_host(f"ls {ROOT}/on-hybrid/datasets {ROOT}/on-all-tmpfs") == (
        f"{ROOT}/on-all-tmpfs:\n\n{ROOT}/on-hybrid/datasets:\n"
    )
    ran(cluster, "reader", "grep -x host /host/file && grep -x claim /claim/file")
    status = json.loads(ok(invoke("workspace", "status", "-o", "json")))
    assert {each["name"] for each in status["workspaces"]} == {f"on-{mode}" for mode in modes}
    assert "on-all-tmpfs is empty; a restart may have taken it" in ok(invoke("workspace", "status"))
    [run] = json.loads(ok(invoke("workspace", "ps", *on_disk, "-o", "json")))["runs"]
    assert (run["tag"], run["state"]) == ("lasting", "exited")

    ok(invoke("workspace", "create", "--config", configs["hybrid"], *MEANT))
    assert cluster.on_host(f"cat {ROOT}/on-hybrid/code/file") == "hybrid\n"
    for config in configs.values():
        assert cordoned(cluster)
        ok(invoke("workspace", "destroy", "--config", config, *MEANT))
    assert not cordoned(cluster)
    assert cluster.on_host(f"ls {ROOT}") == ""
