"""GPUs that are not well: what the exporter and nvidia-smi say of them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from msgspec import structs

from kvestigate.cluster.node.gpu.allocation import Allocation
from kvestigate.cluster.node.gpu.exporter import GpuFigures, exposition
from kvestigate.cluster.node.gpu.model import (
    Condition,
    Gpu,
    Load,
    RowRemap,
    Throttle,
    gpu_capacity,
    instances,
    node_gpus,
)
from kvestigate.cluster.node.gpu.smi import answer
from kvestigate.cluster.scenarios.library import Source, checked
from kvestigate.cluster.scenarios.nodes import nodes
from kvestigate.errors import InputError
from kvestigate.http.message import Headers, Request
from kvestigate.snapshot.prometheus import samples

SICK = Condition(
    xid=48,
    ecc=3,
    ecc_lifetime=11,
    row_remap=RowRemap.PENDING,
    throttle=(Throttle.HW_THERMAL, Throttle.HW_SLOWDOWN),
    pcie_width=8,
    nvlink_errors=2,
)


def pair(condition: Condition) -> list[Gpu]:
    """A healthy GPU, and one in this condition."""
    well, ill = node_gpus("n", 2, "H100", (Load.BUSY,))
    return [structs.replace(well, always=True), structs.replace(ill, condition=condition)]


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        ("XID_ERRORS", [0, 48]),
        ("ECC_DBE_VOL_TOTAL", [0, 3]),
        ("ECC_DBE_AGG_TOTAL", [0, 11]),
        ("ROW_REMAP_PENDING", [0, 1]),
        ("ROW_REMAP_FAILURE", [0, 0]),
        ("CLOCKS_EVENT_REASONS", [0, 0x48]),
        ("PCIE_LINK_WIDTH", [16, 8]),
        ("NVLINK_RECOVERY_ERROR_COUNT_TOTAL", [0, 2]),
    ],
)
def test_the_exporter_tells_of_it(metric: str, values: list[int]) -> None:
    said = exposition(pair(SICK), "n", 0.0).encode()
    assert [each.value for each in samples(said, f"DCGM_FI_DEV_{metric}")] == values


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("ecc.errors.uncorrected.volatile.total", ["0", "3"]),
        ("ecc.errors.uncorrected.aggregate.total", ["0", "11"]),
        ("remapped_rows.pending", ["No", "Yes"]),
        ("clocks_event_reasons.active", ["0x0000000000000000", "0x0000000000000048"]),
        ("pcie.link.width.current", ["16", "8"]),
    ],
)
def test_nvidia_smi_tells_of_it(field: str, values: list[str]) -> None:
    words = [f"--query-gpu={field}", "--format=csv,noheader"]
    assert answer(words, pair(SICK), 0.0) == (0, "".join(f"{value}\n" for value in values))


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("ecc_errors/volatile/dram_uncorrectable", ["0", "3"]),
        ("ecc_errors/aggregate/dram_uncorrectable", ["0", "11"]),
        ("remapped_rows/remapped_row_pending", ["No", "Yes"]),
        (
            "clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown",
            ["Not Active", "Active"],
        ),
        ("pci/pci_gpu_link_info/link_widths/current_link_width", ["16x", "8x"]),
        ("temperature/gpu_temp_slow_threshold", ["92 C", "92 C"]),
    ],
)
def test_so_does_its_xml(path: str, values: list[str]) -> None:
    code, text = answer(["-q", "-x"], pair(SICK), 0.0)
    root = ElementTree.fromstring(text)
    assert code == 0
    assert [gpu.findtext(path) for gpu in root.findall("gpu")] == values


def test_a_gpu_that_fell_off_the_bus_is_only_named() -> None:
    gpus = pair(Condition(lost=True, xid=79))
    assert gpu_capacity(tuple(gpus)) == {"nvidia.com/gpu": "1"}
    assert len(list(samples(exposition(gpus, "n", 0.0).encode(), "DCGM_FI_DEV_GPU_TEMP"))) == 1
    code, text = answer(["-L"], gpus, 0.0)
    first, second = text.splitlines()
    assert (code, second.split(":")[0]) == (0, "GPU 0")
    assert first == (
        "Unable to determine the device handle for GPU 00000000:0F:00.0: GPU is lost.  "
        "Reboot the system to recover this GPU"
    )


async def test_energy_adds_up_for_divided_gpus_too() -> None:
    [gpu] = node_gpus("n", 1, "A100", (Load.BUSY,))
    divided = structs.replace(gpu, always=True, instances=instances(gpu.uuid, ["3g.40gb"] * 2))
    clock = _Clock()
    figures = GpuFigures("n", Allocation([divided]), clock)  # type: ignore[arg-type]
    request = Request("GET", "/metrics", "", Headers([]))
    await figures.handle(request)
    clock.time = 10.0
    said = (await figures.handle(request)).body
    assert isinstance(said, bytes)
    [watts] = samples(said, "DCGM_FI_DEV_POWER_USAGE")
    [energy] = samples(said, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
    assert "GPU_I_ID" not in energy.labels
    assert energy.value == pytest.approx(watts.value * 10 * 1000)


class _Clock:
    time = 0.0

    def now(self) -> float:
        return self.time


def test_a_scenario_says_what_is_wrong() -> None:
    text = """\
apiVersion: kvestigate.dev/v1
kind: Scenario
metadata: {name: mine}
spec:
  summary: of a test
  nodes:
    - name: gpu-1
      gpus:
        model: H100
        count: 2
        each:
          - load: busy
            condition:
              {xid: 48, ecc: 3, eccLifetime: 11, rowRemap: pending, pcieWidth: 8, nvlinkErrors: 2,
               throttle: [hw_thermal_slowdown, hw_slowdown]}
"""
    [plan] = nodes(checked(Source("mine.yaml", text)))
    assert [gpu.condition for gpu in plan.config.gpus] == [SICK, Condition()]
    with pytest.raises(InputError, match=r"condition\.pcieWidth"):
        checked(Source("mine.yaml", text.replace("pcieWidth: 8", "pcieWidth: 99")))
