"""What nvidia-smi says is read, and what it does not tell is not made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.node.gpu import smi as simulated
from kvestigate.cluster.node.gpu.model import Gpu, Load, gpu_uuid, instances
from kvestigate.errors import InputError
from kvestigate.optimize.smi import COMMAND, Reading, readings


def test_a_line_is_a_gpu() -> None:
    text = (
        "0, GPU-aa, 100, 37, 89277, 97887, 35, 152.50, 600.00\n"
        "11, GPU-bb, [N/A], [Not Supported], 4, 97887, N/A, [Unknown Error], 600.00\n"
    )
    assert readings(text) == (
        Reading(0, "GPU-aa", 100.0, 37.0, 89277.0, 97887.0, 35.0, 152.5, 600.0),
        Reading(11, "GPU-bb", None, None, 4.0, 97887.0, None, None, 600.0),
    )
    assert readings("\n\n") == ()


@pytest.mark.parametrize(
    "text", ["No devices were found", "0, GPU-aa", "x, u, 1, 2, 3, 4, 5, 6, 7", "²,u,1,2,3,4,5,6,7"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="does not describe a GPU"):
        readings(text)


def test_the_question_is_one_that_is_understood() -> None:
    gpu = Gpu(0, gpu_uuid("n", 0), "H100", load=Load.BUSY, always=True)
    divided = Gpu(1, "GPU-1", "H100", instances=instances("GPU-1", ("1g.10gb",)))
    code, said = simulated.answer(COMMAND[1:], [gpu, divided], 0.0)
    assert code == 0
    busy, mig = readings(said)
    assert (busy.uuid, busy.memory_total_mib, busy.limit_watts) == (gpu.uuid, 81559.0, 700.0)
    assert busy.utilization is not None
    assert mig.utilization is None


@given(st.text())
def test_whatever_is_said_is_read_or_refused(text: str) -> None:
    try:
        found = readings(text)
    except InputError:
        return
    assert all(it.utilization is None or it.utilization >= 0 for it in found)
