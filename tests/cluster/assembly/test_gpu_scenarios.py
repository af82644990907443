"""Scenarios about GPUs, as a client of their clusters sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.snapshot.prometheus import samples
from tests.cluster.assembly.conftest import Object, all_running, until_pods
from tests.cluster.assembly.test_claimed_gpus import scenario

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(120)]


async def metrics(api: Api, pod: Object, port: int) -> bytes:
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}:{port}/proxy/metrics"
    return await api.request("GET", path, accept="text/plain")


async def test_sick_gpus_tell_of_it_and_healthy_ones_do_not(tmp_path: Path) -> None:
    async with scenario("sick-gpus", tmp_path) as api:
        pods = await until_pods(api, all_running(4 + 4))
        xids: dict[str, list[float]] = {}
        for pod in pods:
            if pod["metadata"]["namespace"] == "gpu-operator":
                said = await metrics(api, pod, 9400)
                told = samples(said, "DCGM_FI_DEV_XID_ERRORS")
                xids[pod["spec"]["nodeName"]] = [each.value for each in told]
        words = ["nvidia-smi", "-L"]
        async with api.exec("train-lost-1", words, namespace="training") as session:
            listed = (await session.communicate(b"")).stdout.decode()
    assert xids == {
        "healthy-1": [0, 0],
        "memory-1": [48, 63, 64, 0],
        "slow-1": [0, 0, 0, 74],
        "lost-1": [0],  # the other one cannot be asked
    }
    assert "GPU 0: NVIDIA H100" in listed


async def test_models_are_at_work_overloaded_and_idle(tmp_path: Path) -> None:
    async with scenario("model-serving", tmp_path) as api:
        pods = await until_pods(api, all_running(3), Selection("models"))
        figures = {}
        for pod in pods:
            said = await metrics(api, pod, 8000)
            [running] = samples(said, "vllm:num_requests_running")
            [waiting] = samples(said, "vllm:num_requests_waiting")
            figures[pod["metadata"]["labels"]["app"]] = (running.value, waiting.value)
    assert figures == {"chat": (24, 0), "code": (64, 56), "summaries": (0, 0)}
