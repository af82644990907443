"""Pods with claims on a node: which of them start, and what their containers are told."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate.aio.clock import WALL
from kvestigate.client.api import PODS, Api
from kvestigate.cluster.node.agent.agent import Agent
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.gpu.model import Gpu, Offer, gpu_uuid, instances
from kvestigate.cluster.node.hosts.directory import DirectoryHost
from kvestigate.cluster.node.hosts.simulated import SimulatedHost
from kvestigate.kube import builtins
from tests.cluster.node.conftest import (
    Object,
    is_ready,
    lone_agent,
    pod,
    says,
    shell,
    told,
    until,
)

CLAIMS, SLICES = builtins.resource("resourceclaims"), builtins.resource("resourceslices")
DRIVER = "gpu.nvidia.com"
GPUS = (
    Gpu(0, gpu_uuid("here", 0), "H100", offer=Offer.DRA),
    Gpu(1, gpu_uuid("here", 1), "A100", instances=instances("x", ["3g.40gb"]), offer=Offer.DRA),
)
TELL = shell("echo =$CUDA_VISIBLE_DEVICES; sleep 600")


@pytest.fixture
async def node(api: Api, tmp_path: Path) -> AsyncIterator[Agent]:
    host = DirectoryHost(tmp_path / "here", now=time.time)
    async with lone_agent(api, host, NodeConfig("here", gpus=GPUS)) as agent:
        yield agent


def result(device: str, driver: str = DRIVER, pool: str = "here", request: str = "r") -> Object:
    return {"request": request, "driver": driver, "pool": pool, "device": device}


async def place(
    api: Api, *results: Object, reserved: bool = True, resources: Object | None = None
) -> None:
    """A pod with a claim of these devices, put on the node when all of that is written."""
    requests = [
        {"name": name, "exactly": {"deviceClassName": "gpu"}}
        for name in dict.fromkeys(each["request"] for each in results or [result("")])
    ]
    body = {"metadata": {"name": "one"}, "spec": {"devices": {"requests": requests}}}
    await api.create(CLAIMS, body, namespace="default")
    container = {**TELL, "resources": resources or {"claims": [{"name": "gpu"}]}}
    named = [{"name": "gpu", "resourceClaimName": "one"}]
    made = await api.create(PODS, pod("p", container, nodeName="", resourceClaims=named))
    if results:
        consumer = {"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}
        status: dict[str, Any] = {"allocation": {"devices": {"results": list(results)}}}
        status |= {"reservedFor": [consumer]} if reserved else {}
        patch = {"status": status}
        await api.patch(CLAIMS, "one", patch, namespace="default", subresource="status")
    await api.bind("p", "here", namespace="default", uid=made["metadata"]["uid"])


async def test_the_node_offers_its_gpus_as_devices(api: Api, node: Agent) -> None:
    [offered] = (await api.list(SLICES)).items
    assert offered["spec"]["pool"] == {"name": "here", "generation": 1, "resourceSliceCount": 1}
    whole, part = offered["spec"]["devices"]
    assert (whole["name"], part["name"]) == ("gpu-0", "gpu-1-mig-9-0-4")
    assert whole["capacity"] == {"memory": {"value": "81559Mi"}}
    assert whole["attributes"] == {
        "type": {"string": "gpu"},
        "uuid": {"string": GPUS[0].uuid},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": "Hopper"},
        "pcieBusID": {"string": "0000:07:00.0"},
        "addressingMode": {"string": "None"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "driverVersion": {"version": "580.95.5"},
        "cudaDriverVersion": {"version": "13.0.0"},
    }
    wanted = {"type": "mig", "parentUUID": GPUS[1].uuid, "profile": "3g.40gb"}
    assert {name: part["attributes"][name]["string"] for name in wanted} == wanted


async def test_a_container_is_told_of_what_its_pod_claimed(api: Api, node: Agent) -> None:
    await place(api, result("gpu-0"), result("gpu-1-mig-9-0-4"))
    await until(api, "p", is_ready)
    both = f"={GPUS[0].uuid},{GPUS[1].instances[0].uuid}"
    await says(node, "p", f"{both}\n")
    claim = await api.get(CLAIMS, "one", namespace="default")
    conditions = {
        each["device"]: each["conditions"][0]["type"] for each in claim["status"]["devices"]
    }
    assert conditions == {"gpu-0": "Ready", "gpu-1-mig-9-0-4": "Ready"}


async def test_a_container_gets_the_request_that_it_names(api: Api, node: Agent) -> None:
    chosen = {"claims": [{"name": "gpu", "request": "part"}]}
    await place(
        api,
        result("gpu-0", request="whole"),
        result("gpu-1-mig-9-0-4", request="part"),
        resources=chosen,
    )
    await until(api, "p", is_ready)
    await says(node, "p", f"={GPUS[1].instances[0].uuid}\n")


FAILED = "Failed to prepare dynamic resources: prepare dynamic resources: "


@pytest.mark.parametrize(
    ("results", "reserved", "why"),
    [
        ((), True, "ResourceClaim one: not allocated"),
        ((result("gpu-0"),), False, "is not allowed to use ResourceClaim one"),
        (
            (result("gpu-7"),),
            True,
            "NodePrepareResources failed for ResourceClaim one: unknown device here/gpu-7",
        ),
        ((result("nic", driver="nic.example.com"),), True, "DRA driver nic.example.com is not"),
    ],
)
async def test_a_pod_without_its_devices_waits(
    api: Api, node: Agent, results: tuple[Object, ...], reserved: bool, why: str
) -> None:
    await place(api, *results, reserved=reserved)
    assert why in await told(api, "FailedPrepareDynamicResources", FAILED)
    waiting = await api.get(PODS, "p", namespace="default")
    assert waiting["status"].get("phase", "Pending") == "Pending"


async def test_where_nothing_is_real_any_driver_will_do(api: Api) -> None:
    async with lone_agent(api, SimulatedHost(WALL), NodeConfig("here")):
        await place(api, result("nic", driver="nic.example.com"))
        await until(api, "p", is_ready)
