"""What the DCGM exporter of a simulated node says, and who hears it."""

from __future__ import annotations

import msgspec
import pytest

from kvestigate.aio.clock import WallClock
from kvestigate.cluster.node.gpu.allocation import Allocation
from kvestigate.cluster.node.gpu.exporter import GpuFigures, exposition
from kvestigate.cluster.node.gpu.model import (
    EXPORTS,
    Gpu,
    Load,
    Steady,
    gpu_uuid,
    instances,
    node_gpus,
)
from kvestigate.cluster.node.spec.images import is_gpu_exporter
from kvestigate.cluster.node.spec.pod import Container, Pod
from kvestigate.http.message import Headers, Request
from kvestigate.kube.views.meta import Metadata
from kvestigate.snapshot.exporters import readings
from kvestigate.snapshot.prometheus import samples

POD = Pod(metadata=Metadata(name="train-0", namespace="ml", uid="u"))
BUSY = Steady(utilization=97, memory_mib=70000, temperature=61, watts=512.5)


def container(resource: str) -> Container:
    body = {"name": "main", "resources": {"limits": {resource: "1"}}}
    return msgspec.convert(body, Container)


def given(gpus: tuple[Gpu, ...], resource: str = "nvidia.com/gpu") -> Allocation:
    allocation = Allocation(gpus)
    allocation.variables(POD, container(resource))
    return allocation


def two() -> tuple[Gpu, ...]:
    return tuple(
        msgspec.structs.replace(gpu, steady=BUSY)
        for gpu in node_gpus("n1", 2, "H100", (Load.BUSY,))
    )


def test_each_gpu_has_its_figures_and_its_user() -> None:
    said = exposition(given(two()).gpus, "n1", 0.0).encode()
    figures = {
        metric: [sample.value for sample in samples(said, f"DCGM_FI_{metric}")]
        for metric in (
            "DEV_GPU_UTIL",
            "DEV_FB_USED",
            "DEV_FB_FREE",
            "DEV_POWER_USAGE",
            "DEV_GPU_TEMP",
            "PROF_GR_ENGINE_ACTIVE",
        )
    }
    assert figures == {
        "DEV_GPU_UTIL": [97, 0],
        "DEV_FB_USED": [70000, 4],
        "DEV_FB_FREE": [11559, 81555],
        "DEV_POWER_USAGE": [512.5, 98],
        "DEV_GPU_TEMP": [61, 32],
        "PROF_GR_ENGINE_ACTIVE": [0.97, 0],
    }
    used, unused = samples(said, "DCGM_FI_DEV_GPU_UTIL")
    assert used.labels == {
        "gpu": "0",
        "UUID": gpu_uuid("n1", 0),
        "pci_bus_id": "00000000:07:00.0",
        "device": "nvidia0",
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": "n1",
        "container": "main",
        "namespace": "ml",
        "pod": "train-0",
    }
    assert {"container", "namespace", "pod"}.isdisjoint(unused.labels)


def test_every_metric_is_described_once() -> None:
    lines = exposition(two(), "n1", 0.0).splitlines()
    for word in ("HELP", "TYPE"):
        named = [line.split()[2] for line in lines if line.startswith(f"# {word}")]
        assert len(named) == len(set(named)) == 22


def test_instances_tell_their_share_but_not_what_only_whole_gpus_measure() -> None:
    (gpu,) = node_gpus("n1", 1, "A100", (Load.BUSY,))
    parts = instances(gpu.uuid, ("1g.10gb", "3g.40gb"))
    divided = msgspec.structs.replace(gpu, instances=parts, steady=BUSY)
    said = exposition(given((divided,), "nvidia.com/mig-3g.40gb").gpus, "n1", 0.0).encode()
    assert [*samples(said, "DCGM_FI_DEV_GPU_UTIL")] == []
    shares = [*samples(said, "DCGM_FI_PROF_GR_ENGINE_ACTIVE")]
    assert [(it.labels["GPU_I_PROFILE"], it.value) for it in shares] == [
        ("1g.10gb", 0),
        ("3g.40gb", 0.97),
    ]
    assert [it.value for it in samples(said, "DCGM_FI_DEV_FB_USED")] == [0, 35000]
    assert [it.value for it in samples(said, "DCGM_FI_DEV_FB_FREE")] == [10240, 5960]


@pytest.mark.parametrize(
    ("image", "command", "expected"),
    [
        ("nvcr.io/nvidia/k8s/dcgm-exporter:4.2.0-4.1.0-ubuntu22.04", [], True),
        ("dcgm-exporter@sha256:0", [], True),
        ("nvcr.io/nvidia/k8s/dcgm-exporter:4", ["sleep", "1"], False),
        ("registry.example/gpu-exporter:3.3", [], False),
    ],
)
def test_who_is_an_exporter(image: str, command: list[str], expected: bool) -> None:
    assert is_gpu_exporter(image, command) is expected
    body = {"name": "main", "image": image, "command": command}
    marked = Allocation(two()).variables(POD, msgspec.convert(body, Container))
    assert (EXPORTS in marked) is expected


def test_on_a_node_without_gpus_nobody_answers_for_an_exporter() -> None:
    assert Allocation().variables(POD, Container(name="main", image="dcgm-exporter")) == {}


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [("/health", 200, b"OK"), ("/", 404, b"404 page not found\n")],
)
async def test_paths(path: str, status: int, body: bytes) -> None:
    figures = GpuFigures("n1", Allocation(two()), WallClock())
    answer = await figures.handle(Request("GET", path, "", Headers(), b""))
    assert (answer.status, answer.body) == (status, body)


async def test_what_is_exposed_is_what_the_audit_reads() -> None:
    figures = GpuFigures("n1", given(two()), WallClock())
    answer = await figures.handle(Request("GET", "/metrics", "", Headers(), b""))
    assert isinstance(answer.body, bytes)
    first, second = readings(answer.body, "n1")
    assert (first.uuid, first.namespace, first.pod, first.container) == (
        gpu_uuid("n1", 0),
        "ml",
        "train-0",
        "main",
    )
    assert (first.utilization, first.memory_used_mib) == (97, 70000)
    assert (second.utilization, second.memory_used_mib, second.pod) == (0, 4, "")


async def test_it_listens_once_it_is_asked_where() -> None:
    figures = GpuFigures("n1", Allocation(two()), WallClock())
    assert await figures.address() == await figures.address()
    await figures.aclose()
