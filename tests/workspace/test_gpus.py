"""Who has which GPU, and which ones a workspace is given."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import Conflict, InputError, KvestigateError
from kvestigate.workspace.gpus import (
    Claims,
    Gpu,
    Use,
    choose,
    choose_for_run,
    judge,
    parse_checkpoint,
    parse_given,
    parse_processes,
    parse_readings,
)
from kvestigate.workspace.marker import GpuId
from kvestigate.workspace.spec import GpuSpec

LISTED = """\
0, GPU-a, NVIDIA H100 80GB HBM3, 81559, 60000, 97
1, GPU-b, NVIDIA H100 80GB HBM3, 81559, 4, 0
2, GPU-c, NVIDIA H100 80GB HBM3, 81559, 4, 0
3, GPU-d, NVIDIA H100 80GB HBM3, 81559, 4, [N/A]
"""
NOBODY = Claims({}, {}, {}, {}, 0)


def test_nvidia_smi_is_read() -> None:
    readings = parse_readings(LISTED)
    assert [(it.index, it.uuid, it.memory_used_mib, it.utilization) for it in readings] == [
        (0, "GPU-a", 60000, 97.0),
        (1, "GPU-b", 4, 0.0),
        (2, "GPU-c", 4, 0.0),
        (3, "GPU-d", 4, None),
    ]
    assert parse_processes("GPU-a, 4001\nGPU-a, 4002\nGPU-b, [N/A]\n") == {"GPU-a": 4001}


def test_the_environment_of_containers_says_which_devices_they_were_given() -> None:
    text = (
        "/proc/17/environ:NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b\n"
        "/proc/18/environ:NVIDIA_VISIBLE_DEVICES=GPU-a\n"
        "/dev/null:\n"
    )
    assert parse_given(text) == {"GPU-a": 17, "GPU-b": 17}


@given(st.text())
def test_any_output_can_be_read(text: str) -> None:
    parse_readings(text)
    parse_processes(text)
    parse_given(text)
    parse_checkpoint(text, {})


def checkpoint(*entries: tuple[str, str, object]) -> str:
    written = [
        {"PodUID": pod, "ResourceName": resource, "DeviceIDs": devices}
        for pod, resource, devices in entries
    ]
    return json.dumps({"Data": {"PodDeviceEntries": written}, "Checksum": 1})


def test_the_kubelets_record_says_which_pod_has_which_device() -> None:
    text = checkpoint(
        ("u1", "nvidia.com/gpu", {"-1": ["GPU-a"], "0": ["GPU-b"]}),
        ("u2", "nvidia.com/gpu", ["GPU-c"]),
        ("gone", "nvidia.com/gpu", {"0": ["GPU-d"]}),
        ("u2", "rdma/nic", {"0": ["nic-1"]}),
    )
    assert parse_checkpoint(text, {"u1": "ml/train", "u2": "ml/serve"}) == {
        "GPU-a": "ml/train",
        "GPU-b": "ml/train",
        "GPU-c": "ml/serve",
    }


@pytest.mark.parametrize(
    ("claims", "uses"),
    [
        (NOBODY, ["process", "free", "free", "free"]),
        (Claims({}, {}, {"GPU-c": 17}, {}, 0), ["process", "free", "process", "free"]),
        (Claims({"GPU-b": "w"}, {}, {}, {}, 0), ["process", "workspace", "free", "free"]),
        (Claims({}, {"GPU-a": "n/p", "GPU-b": "n/q"}, {}, {}, 2), ["pod", "pod", "free", "free"]),
        # One pod, and its process is on the GPU: all are accounted for.
        (Claims({}, {}, {"GPU-a": 9}, {}, 1), ["process", "free", "free", "free"]),
        # Both are known, if only by what their containers were told.
        (Claims({}, {}, {"GPU-a": 9}, {"GPU-d": 8}, 2), ["process", "free", "free", "pod"]),
        # Two were given away, and only one shows: any of the others may be the second.
        (Claims({}, {}, {"GPU-a": 9}, {}, 2), ["process", "unsure", "unsure", "unsure"]),
        (
            Claims({"GPU-b": "w"}, {}, {"GPU-a": 9}, {}, 2),
            ["process", "workspace", "unsure", "unsure"],
        ),
    ],
)
def test_a_gpu_is_free_if_nobody_can_have_it(claims: Claims, uses: list[str]) -> None:
    assert [gpu.use.value for gpu in judge(parse_readings(LISTED), claims)] == uses


GPUS = judge(parse_readings(LISTED), Claims({"GPU-c": "other"}, {}, {"GPU-a": 17}, {}, 0))
B, D = GpuId(1, "GPU-b"), GpuId(3, "GPU-d")


@pytest.mark.parametrize(
    ("wanted", "given_"),
    [
        (GpuSpec(), ()),
        (GpuSpec(reserve=1), (B,)),
        (GpuSpec(reserve=2), (B, D)),
        (GpuSpec(indices=(3, 1)), (D, B)),
    ],
)
def test_free_ones_are_given(wanted: GpuSpec, given_: tuple[GpuId, ...]) -> None:
    assert choose(wanted, GPUS, "node-1") == given_


@pytest.mark.parametrize(
    ("wanted", "kind", "message"),
    [
        (GpuSpec(reserve=3), Conflict, "reserve: 3 are wanted, and 2 of 4 GPUs of node-1 are free"),
        (GpuSpec(indices=(7,)), InputError, "node-1 has no GPU 7"),
        (
            GpuSpec(indices=(0,)),
            Conflict,
            "GPU 0 of node-1 is not free: a process uses it (pid 17)",
        ),
        (GpuSpec(indices=(2,)), Conflict, "workspace other has reserved it"),
    ],
)
def test_others_are_refused(wanted: GpuSpec, kind: type[KvestigateError], message: str) -> None:
    with pytest.raises(kind) as caught:
        choose(wanted, GPUS, "node-1")
    assert message in caught.value.message
    assert caught.value.hint


def test_a_run_sees_what_its_workspace_has_or_part_of_it() -> None:
    own = (B, D)
    assert choose_for_run((), own, (), "n") == own
    assert choose_for_run((3,), own, (), "n") == (D,)
    with pytest.raises(InputError, match="GPU 0 does not belong to the workspace") as caught:
        choose_for_run((0,), own, GPUS, "n")
    assert caught.value.hint == "it has reserved 1, 3"


def test_a_run_of_a_workspace_without_gpus_sees_none_or_free_ones() -> None:
    assert choose_for_run((), (), GPUS, "n") == ()
    assert choose_for_run((1,), (), GPUS, "n") == (B,)
    with pytest.raises(Conflict, match="GPU 0 of n is not free"):
        choose_for_run((0,), (), GPUS, "n")


@given(
    st.lists(st.sampled_from([Use.FREE, Use.POD, Use.PROCESS, Use.WORKSPACE]), max_size=16),
    st.integers(0, 16),
)
def test_as_many_as_asked_for_and_never_one_that_is_taken(uses: list[Use], count: int) -> None:
    gpus = [Gpu(index, f"GPU-{index}", "m", 1, 0, 0.0, use) for index, use in enumerate(uses)]
    free = {index for index, use in enumerate(uses) if use is Use.FREE}
    if count > len(free):
        with pytest.raises(Conflict):
            choose(GpuSpec(reserve=count), gpus, "n")
    else:
        chosen = choose(GpuSpec(reserve=count), gpus, "n")
        assert len({gpu.index for gpu in chosen} & free) == count == len(chosen)
