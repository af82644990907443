"""Clusters whose pods claim GPUs as devices: from the scenario to what a container sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kvestigate.client.api import PODS, Api
from kvestigate.cluster.assembly.directory import ClusterDirectory
from kvestigate.cluster.assembly.population import shape_of
from kvestigate.cluster.scenarios.library import checked, find
from kvestigate.kube import builtins
from tests.cluster.assembly.conftest import Object, all_running, cluster, until_pods

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(120)]

GPU = "nvidia.com/gpu"


@asynccontextmanager
async def scenario(name: str, directory: Path) -> AsyncIterator[Api]:
    source = find(name)
    place = ClusterDirectory(directory, "test")
    place.path.mkdir(parents=True)
    place.scenario.write_text(source.text)
    async with cluster(directory, shape_of(checked(source))) as api:
        yield api


async def listed(api: Api, plural: str) -> list[Object]:
    return list((await api.list(builtins.resource(plural), type=Object)).items)


def results(claim: Object) -> list[Object]:
    allocation = claim.get("status", {}).get("allocation") or {"devices": {"results": []}}
    found: list[Object] = allocation["devices"]["results"]
    return found


async def test_a_fleet_without_a_device_plugin(tmp_path: Path) -> None:
    async with scenario("dra-fleet", tmp_path) as api:
        pods = await until_pods(api, all_running(4 + 3 + 2 + 4))
        nodes, claims = await listed(api, "nodes"), await listed(api, "resourceclaims")
        slices = await listed(api, "resourceslices")
        assert not any(GPU in node["status"]["capacity"] for node in nodes)
        offered = {
            (each["spec"]["pool"]["name"], device["name"]): device
            for each in slices
            for device in each["spec"]["devices"]
        }
        assert len(offered) == 3 * 4 + 2
        held = Counter(
            (each["pool"], each["device"])
            for claim in claims
            for each in results(claim)
            if not each.get("adminAccess")
        )
        assert (len(held), set(held.values())) == (4 + 2 + 2 + 1, {1})
        large = [key for key in held if key[0] == "large-1"]
        assert len(large) == 2  # two pods have what they would rather have

        [waiting] = [pod for pod in pods if pod["metadata"]["name"] == "pretrain"]
        [condition] = waiting["status"]["conditions"]
        assert condition["message"].startswith(
            "0/4 nodes are available: 4 cannot allocate all claims."
        )
        [notebooks] = [each for each in claims if each["metadata"]["name"] == "notebooks"]
        assert {each["name"] for each in notebooks["status"]["reservedFor"]} == {
            "notebook-ada",
            "notebook-grace",
        }
        [place] = results(notebooks)
        device = offered[place["pool"], place["device"]]
        uuid = device["attributes"]["uuid"]["string"]
        [ready] = notebooks["status"]["devices"]
        assert (ready["pool"], ready["device"]) == (place["pool"], place["device"])
        script = "echo $CUDA_VISIBLE_DEVICES; nvidia-smi -L"
        async with api.exec("notebook-ada", ["sh", "-c", script], namespace="research") as session:
            done = await session.communicate(b"")
        said = done.stdout.decode().splitlines()
        assert said == [uuid, f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {uuid})"]

        await api.delete(PODS, "notebook-ada", namespace="research")
        await api.delete(PODS, "notebook-grace", namespace="research")
        resource = builtins.resource("resourceclaims")
        async with api.watch(resource, type=Object) as events:
            async for event in events:
                if event.object["metadata"]["name"] == "notebooks" and not results(event.object):
                    break
        assert "devices" not in event.object["status"]


async def test_a_gpu_is_offered_in_one_way_only(tmp_path: Path) -> None:
    async with scenario("mixed-gpus", tmp_path) as api:
        pods = await until_pods(api, all_running(6 + 5))
        nodes, claims = await listed(api, "nodes"), await listed(api, "resourceclaims")
        slices = await listed(api, "resourceslices")
    capacities = {
        node["metadata"]["name"]: {
            name: amount
            for name, amount in node["status"]["capacity"].items()
            if name.startswith("nvidia.com/")
        }
        for node in nodes
    }
    assert capacities == {
        "plugin-1": {GPU: "4"},
        "plugin-mig-1": {
            GPU: "0",
            "nvidia.com/mig-3g.40gb": "2",
            "nvidia.com/mig-2g.20gb": "2",
            "nvidia.com/mig-1g.10gb": "2",
        },
        "dra-1": {},
        "dra-mig-1": {},
    }
    offered = {
        each["spec"]["nodeName"]: [device["name"] for device in each["spec"]["devices"]]
        for each in slices
    }
    assert offered == {
        "dra-1": ["gpu-0", "gpu-1", "gpu-2", "gpu-3"],
        "dra-mig-1": [
            *("gpu-0-mig-9-0-4", "gpu-0-mig-14-4-2", "gpu-0-mig-19-6-1"),
            *("gpu-1-mig-9-0-4", "gpu-1-mig-14-4-2", "gpu-1-mig-19-6-1"),
        ],
    }
    held = sorted(f"{each['pool']}/{each['device']}" for c in claims for each in results(c))
    assert held == [
        *("dra-1/gpu-0", "dra-1/gpu-1"),
        *("dra-mig-1/gpu-0-mig-19-6-1", "dra-mig-1/gpu-0-mig-9-0-4", "dra-mig-1/gpu-1-mig-19-6-1"),
    ]
    where = {
        pod["spec"]["nodeName"].partition("-")[0]
        for pod in pods
        if pod["metadata"]["namespace"] == "team-claims"
    }
    assert where == {"dra"}
