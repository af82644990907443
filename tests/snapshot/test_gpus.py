"""GPUs of every vendor, whole, sliced and shared."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.node.gpu import model as embedded
from kvestigate.snapshot.capacity import requested_by_node
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.gpus import consumers
from kvestigate.snapshot.ledger.build import identified as devices
from kvestigate.snapshot.ledger.build import stocks as nodes_with_gpus
from kvestigate.snapshot.ledger.model import Device, Offer, Right
from tests.snapshot.objects import as_node, as_pod, container, node, pod

H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/cuda.driver-version.full": "580.65.06",
    "nvidia.com/cuda.runtime-version.full": "13.0",
    "nvidia.com/mig.capable": "true",
    "nvidia.com/gpu.replicas": "1",
}
OLDER = {
    "nvidia.com/cuda.driver.major": "535",
    "nvidia.com/cuda.driver.minor": "104",
    "nvidia.com/cuda.driver.rev": "05",
    "nvidia.com/cuda.runtime.major": "12",
    "nvidia.com/cuda.runtime.minor": "2",
}


@pytest.mark.parametrize(
    ("labels", "offered", "facts"),
    [
        (
            H100,
            {"nvidia.com/gpu": "8"},
            {
                "vendor": "NVIDIA",
                "model": "NVIDIA-H100-80GB-HBM3",
                "count": 8,
                "memory_mib": 81559,
                "driver": "580.65.06",
                "cuda": "13.0",
                "mig_strategy": "none",
                "mig_profiles": {},
                "sharing": "",
                "free": 8,
            },
        ),
        (OLDER, {"nvidia.com/gpu": "1"}, {"driver": "535.104.05", "cuda": "12.2", "count": 1}),
        (
            {**H100, "nvidia.com/mig.strategy": "mixed"},
            {"nvidia.com/mig-1g.10gb": "14", "nvidia.com/mig-3g.40gb": "2"},
            {"mig_strategy": "mixed", "mig_profiles": {"1g.10gb": 14, "3g.40gb": 2}, "count": 8},
        ),
        (
            {**H100, "nvidia.com/gpu.replicas": "4"},
            {"nvidia.com/gpu.shared": "32"},
            {"sharing": "time-slicing", "replicas": 4, "count": 8, "free": 32},
        ),
        (
            {**H100, "nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.replicas": "2"},
            {"nvidia.com/gpu": "16"},
            {"sharing": "mps", "replicas": 2},
        ),
        (
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X"},
            {"amd.com/gpu": "8"},
            {"vendor": "AMD", "model": "AMD_Instinct_MI300X", "count": 8, "memory_mib": None},
        ),
        ({}, {"gpu.intel.com/i915": "2"}, {"vendor": "Intel", "model": "", "count": 2}),
        ({}, {"gpu.intel.com/xe": "1"}, {"vendor": "Intel"}),
        (
            {**H100, "nvidia.com/gpu.memory": "plenty"},
            {"nvidia.com/gpu": "8"},
            {"memory_mib": None},
        ),
    ],
)
def test_what_a_node_tells(
    labels: dict[str, str], offered: dict[str, str], facts: dict[str, Any]
) -> None:
    body = node("n", labels=labels)
    body["status"]["allocatable"] = {"cpu": "8", **offered}
    (found,) = nodes_with_gpus([as_node(body)], {})
    assert {name: getattr(found, name) for name in facts} == facts


def test_devices_that_are_all_unhealthy_are_still_there() -> None:
    body = node("n", labels=H100, gpu="0")
    (found,) = nodes_with_gpus([as_node(body)], {})
    assert (found.count, found.allocatable) == (8, {"nvidia.com/gpu": 0})


def test_a_node_without_gpus_is_left_out() -> None:
    assert nodes_with_gpus([as_node(node("n", cpu="8")), as_node(node("m", gpu="0"))], {}) == ()


def test_consumers_are_containers_and_ended_pods_are_none() -> None:
    bodies = [
        pod("b", container("x", gpu="2"), container("y", gpu="1"), on="n"),
        pod("a", container("z", gpu="4"), phase="Pending"),
        pod("done", container("x", gpu="8"), on="n", phase="Succeeded"),
        pod("none", container("x", cpu="1"), on="n"),
    ]
    pods = [as_pod(body) for body in bodies]
    assert [(it.pod, it.container, it.node, it.amount) for it in consumers(pods)] == [
        ("a", "z", "", 4),
        ("b", "x", "n", 2),
        ("b", "y", "n", 1),
    ]
    (gpus,) = nodes_with_gpus([as_node(node("n", gpu="8"))], requested_by_node(pods))
    assert (gpus.requested, gpus.free) == ({"nvidia.com/gpu": 3}, 5)


def test_what_is_requested_may_be_unknown() -> None:
    (gpus,) = nodes_with_gpus([as_node(node("n", gpu="8"))], None)
    assert (gpus.requested, gpus.free) == (None, None)


def test_the_ledger_has_a_line_for_each_gpu_that_has_a_uuid() -> None:
    told = node("n", gpu="2")
    told["metadata"]["annotations"] = {"kvestigate.dev/gpu-uuids": "GPU-a,GPU-b"}
    silent = node("m", gpu="2")
    seen = [
        GpuReading("GPU-b", "n", "1", 93, "ml", "p", "main"),
        GpuReading("", "m", "0", 5, *"xyz"),
    ]
    assert devices(map(as_node, (told, silent)), seen) == (
        Device("GPU-a", "n", "0"),
        Device("GPU-b", "n", "1", "ml/p/main", 93, offer=Offer.PLUGIN, right=Right.REQUEST),
    )


def test_embedded_nodes_tell_their_uuids_where_the_ledger_looks() -> None:
    gpus = embedded.node_gpus("n", 2, "H100")
    told = node("n", labels=embedded.node_labels(gpus), gpu="2")
    told["metadata"]["annotations"] = embedded.gpu_annotations(gpus)
    assert [it.uuid for it in devices([as_node(told)], [])] == [it.uuid for it in gpus]
