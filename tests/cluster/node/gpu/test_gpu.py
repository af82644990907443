"""Simulated GPUs."""

from __future__ import annotations

import msgspec
import pytest

from kvestigate.cluster.node.gpu.allocation import Allocation, NoDevices
from kvestigate.cluster.node.gpu.model import (
    Gpu,
    Load,
    Steady,
    gpu_annotations,
    gpu_capacity,
    instances,
    node_gpus,
    node_labels,
    reading,
)
from kvestigate.cluster.node.gpu.smi import answer, visible
from kvestigate.cluster.node.spec.pod import Container, Pod
from kvestigate.kube.views.meta import Metadata

GPUS = node_gpus("n1", 4, "H100", (Load.BUSY,))
IDLE = node_gpus("n1", 2, "A100")
DIVIDED = tuple(
    msgspec.structs.replace(
        gpu, load=Load.BUSY, instances=instances(gpu.uuid, ("1g.10gb", "1g.10gb", "3g.40gb"))
    )
    for gpu in node_gpus("n3", 2, "A100")
)


def wants(count: int, name: str = "main") -> Container:
    limits = {"nvidia.com/gpu": str(count)}
    return msgspec.convert({"name": name, "resources": {"limits": limits}}, Container)


def pod(name: str) -> Pod:
    return Pod(metadata=Metadata(name=name, namespace="ml", uid=name))


def test_uuids_are_the_nodes_own_and_stay() -> None:
    again, other = node_gpus("n1", 4, "H100"), node_gpus("n2", 4, "H100")
    assert [gpu.uuid for gpu in again] == [gpu.uuid for gpu in GPUS]
    assert not {gpu.uuid for gpu in GPUS} & {gpu.uuid for gpu in other}


def test_each_gpu_is_given_to_one_container_until_its_pod_goes() -> None:
    told: list[tuple[Gpu, ...]] = []
    allocation = Allocation(GPUS, changed=told.append)
    first = allocation.variables(pod("pod-a"), wants(3))["NVIDIA_VISIBLE_DEVICES"].split(",")
    assert (
        allocation.variables(pod("pod-a"), wants(3))["NVIDIA_VISIBLE_DEVICES"].split(",") == first
    )
    (last,) = allocation.variables(pod("pod-b"), wants(1))["NVIDIA_VISIBLE_DEVICES"].split(",")
    assert sorted([*first, last]) == sorted(gpu.uuid for gpu in GPUS)
    with pytest.raises(NoDevices, match=r"nvidia.com/gpu. Requested: 2, Available: 0"):
        allocation.variables(pod("pod-c"), wants(2))
    allocation.release("pod-a")
    assert (
        len(allocation.variables(pod("pod-c"), wants(2))["NVIDIA_VISIBLE_DEVICES"].split(",")) == 2
    )
    assert [sum(bool(gpu.user) for gpu in gpus) for gpus in told] == [3, 4, 1, 3]


def test_a_container_that_asks_for_none_gets_no_variable() -> None:
    assert Allocation(GPUS).variables(pod("p"), Container(name="main")) == {}


def test_an_earlier_agents_allocation_is_recalled() -> None:
    allocation = Allocation(GPUS)
    allocation.recall(pod("p"), "main", f"{GPUS[2].uuid},unknown")
    given = allocation.variables(pod("q"), wants(3, "other"))["NVIDIA_VISIBLE_DEVICES"]
    assert GPUS[2].uuid not in given


def test_a_gpu_that_nobody_has_is_idle_unless_it_is_a_ghost() -> None:
    ghost = Gpu(0, "GPU-x", "H100", Load.BUSY, always=True)
    allocation = Allocation([ghost, GPUS[1]])
    assert [gpu.load for gpu in allocation.gpus] == [Load.BUSY, Load.IDLE]


@pytest.mark.parametrize(
    ("load", "now", "busy", "full"),
    [
        (Load.IDLE, 0.0, False, False),
        (Load.RESERVED_IDLE, 0.0, False, True),
        (Load.BUSY, 0.0, True, True),
        (Load.BURSTY, 10.0, True, True),
        (Load.BURSTY, 40.0, False, True),
        (Load.HOT, 0.0, True, True),
    ],
)
def test_what_sensors_say_follows_from_the_load(
    load: Load, now: float, busy: bool, full: bool
) -> None:
    shown = reading(Gpu(0, "GPU-x", "H100", load), now)
    assert (shown.utilization > 80, shown.memory_mib > 1000) == (busy, full)
    assert (shown.temperature > 85) == (load is Load.HOT)


def test_the_list_names_every_gpu() -> None:
    assert answer(["-L"], IDLE, 0.0) == (
        0,
        f"GPU 0: NVIDIA A100-SXM4-80GB (UUID: {IDLE[0].uuid})\n"
        f"GPU 1: NVIDIA A100-SXM4-80GB (UUID: {IDLE[1].uuid})\n",
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["--query-gpu=index,memory.total,utilization.gpu", "--format=csv"],
            "index, memory.total [MiB], utilization.gpu [%]\n"
            "0, 81920 MiB, 0 %\n1, 81920 MiB, 0 %\n",
        ),
        (
            ["--query-gpu=index,name,power.limit", "--format=csv,noheader,nounits"],
            "0, NVIDIA A100-SXM4-80GB, 400.00\n1, NVIDIA A100-SXM4-80GB, 400.00\n",
        ),
        (["--query-gpu", "index", "--format", "csv,noheader", "-i", "1"], "1\n"),
        (["--query-compute-apps=pid,used_memory", "--format=csv"], "pid, used_memory [MiB]\n"),
    ],
)
def test_queries_answer_as_csv(arguments: list[str], expected: str) -> None:
    assert answer(arguments, IDLE, 0.0) == (0, expected)


def test_busy_gpus_have_a_process() -> None:
    query = ["--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader"]
    code, text = answer(query, GPUS, 0.0)
    assert code == 0
    assert [line.split(", ")[0] for line in text.splitlines()] == [gpu.uuid for gpu in GPUS]


@pytest.mark.parametrize(
    ("arguments", "gpus", "code", "text"),
    [
        (["--query-gpu=nope", "--format=csv"], IDLE, 2, 'Field "nope" is not a valid field'),
        (["--query-gpu=index"], IDLE, 2, "--format=csv"),
        (["--frobnicate"], IDLE, 2, "--frobnicate"),
        ([], (), 9, "No devices were found"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    arguments: list[str], gpus: tuple[Gpu, ...], code: int, text: str
) -> None:
    got, said = answer(arguments, gpus, 0.0)
    assert got == code
    assert text in said


def test_the_screen_is_a_table_with_straight_edges() -> None:
    code, text = answer([], GPUS, 0.0)
    lines = text.splitlines()[1:]
    assert code == 0
    assert {len(line) for line in lines if line} == {91}
    assert sum("NVIDIA H100 80GB HBM3" in line for line in lines) == 4


def test_a_container_sees_its_own_gpus() -> None:
    assert visible(GPUS, None) == list(GPUS)
    seen = visible(GPUS, f"{GPUS[1].uuid},{GPUS[3].uuid}")
    assert [(gpu.uuid, gpu.number) for gpu in seen] == [(GPUS[1].uuid, 0), (GPUS[3].uuid, 1)]
    asked = ["-i", "1", "--query-gpu=index,uuid", "--format=csv,noheader"]
    assert answer(asked, seen, 0.0) == (0, f"1, {GPUS[3].uuid}\n")
    assert visible(GPUS, "") == []


def test_labels_are_nvidias() -> None:
    labels = node_labels(GPUS)
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert labels["nvidia.com/gpu.count"] == "4"
    assert node_labels(()) == {}


@pytest.mark.parametrize(
    ("load", "now", "expected"),
    [
        (Load.BUSY, 0.0, (42, 500, 55, 123.4)),
        (Load.BUSY, 1000.0, (42, 500, 55, 123.4)),
        (Load.BURSTY, 10.0, (42, 500, 55, 123.4)),
        # What it does at work says nothing about its pauses.
        (Load.BURSTY, 40.0, (0, 50566, 36, 126.0)),
    ],
)
def test_a_scenario_can_say_exactly_what_sensors_show(
    load: Load, now: float, expected: tuple[int, int, int, float]
) -> None:
    steady = Steady(utilization=42, memory_mib=500, temperature=55, watts=123.4)
    shown = reading(Gpu(0, "GPU-x", "H100", load, steady=steady), now)
    assert (shown.utilization, shown.memory_mib, shown.temperature, shown.watts) == expected


def test_what_is_said_of_work_does_not_hold_at_rest() -> None:
    gpu = Gpu(0, "GPU-x", "H100", Load.BUSY, steady=Steady(memory_mib=500))
    allocation = Allocation([gpu])
    assert reading(allocation.gpus[0], 0.0).memory_mib == 4
    allocation.variables(pod("p"), wants(1))
    assert reading(allocation.gpus[0], 0.0).memory_mib == 500


def test_gpus_of_one_load_sway_by_their_seeds() -> None:
    shown = {reading(Gpu(0, "GPU-x", "H100", Load.BUSY, seed=seed), 0.0) for seed in range(5)}
    assert len(shown) > 1


def test_a_divided_gpu_is_offered_in_parts() -> None:
    assert gpu_capacity((*DIVIDED, *IDLE)) == {
        "nvidia.com/gpu": "2",
        "nvidia.com/mig-1g.10gb": "4",
        "nvidia.com/mig-3g.40gb": "2",
    }
    assert gpu_capacity(()) == {}
    assert node_labels(DIVIDED)["nvidia.com/mig.strategy"] == "mixed"
    assert gpu_annotations(IDLE) == {"kvestigate.dev/gpu-uuids": f"{IDLE[0].uuid},{IDLE[1].uuid}"}


def test_instances_are_given_and_seen_one_by_one() -> None:
    allocation = Allocation(DIVIDED)
    limits = {"nvidia.com/mig-3g.40gb": "1", "nvidia.com/mig-1g.10gb": "1"}
    container = msgspec.convert({"name": "main", "resources": {"limits": limits}}, Container)
    given = allocation.variables(pod("p"), container)["NVIDIA_VISIBLE_DEVICES"]
    assert given == f"{DIVIDED[0].instances[0].uuid},{DIVIDED[0].instances[2].uuid}"
    (seen,) = visible(allocation.gpus, given)
    assert answer(["-L"], [seen], 0.0)[1].splitlines() == [
        f"GPU 0: NVIDIA A100-SXM4-80GB (UUID: {DIVIDED[0].uuid})",
        f"  MIG 1g.10gb     Device  0: (UUID: {DIVIDED[0].instances[0].uuid})",
        f"  MIG 3g.40gb     Device  1: (UUID: {DIVIDED[0].instances[2].uuid})",
    ]
    query = ["--query-compute-apps", "gpu_uuid", "--format=csv,noheader"]
    assert answer(query, allocation.gpus, 0.0)[1].splitlines() == given.split(",")
    whole = ["--query-gpu=utilization.gpu,mig.mode.current", "--format=csv,noheader"]
    assert answer(whole, allocation.gpus, 0.0)[1] == "[N/A], Enabled\n" * 2
