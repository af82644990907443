"""Each illness of a GPU is seen wherever its figures come from, and a healthy GPU has none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.health.registry import findings
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.exporters import readings
from kvestigate.snapshot.host_sensors import from_amd_smi, from_nvidia_smi, read_host
from kvestigate.snapshot.sickness import Illness, Sensors, symptoms, unusable
from tests.health.snapshots import snapshot
from tests.snapshot.objects import node

HEALTHY = Sensors(
    xid=0,
    ecc_volatile=0,
    ecc_aggregate=3,
    throttles=0x1 | 0x4,  # idle, and a power cap
    pcie_width=16,
    pcie_width_max=16,
    pcie_gen=1,
    pcie_gen_max=5,
    nvlink_errors=0,
    temperature=60,
    slowdown_at=90,
    utilization=0,
)


def test_a_healthy_gpu_has_no_symptoms() -> None:
    assert symptoms(HEALTHY) == ()
    assert symptoms(Sensors()) == ()


@pytest.mark.parametrize(
    ("sensors", "illness", "severity", "says"),
    [
        (Sensors(xid=79), Illness.XID, "critical", "Xid 79: the GPU has fallen off the bus"),
        (Sensors(xid=63), Illness.XID, "warning", "Xid 63: a row of memory was remapped"),
        (Sensors(ecc_volatile=2), Illness.ECC, "critical", "2 uncorrectable ECC errors"),
        (Sensors(remap_pending=True), Illness.REMAP, "warning", "reset the GPU"),
        (Sensors(remap_failed=True), Illness.REMAP, "critical", "replace the GPU"),
        (Sensors(recovery="Reboot"), Illness.RECOVERY, "critical", "asks for: Reboot"),
        (Sensors(throttles=0x40), Illness.THROTTLE, "warning", "hardware thermal slowdown"),
        (Sensors(pcie_width=8, pcie_width_max=16), Illness.PCIE, "warning", "8 of 16 lanes"),
        (
            Sensors(pcie_gen=1, pcie_gen_max=5, utilization=50),
            Illness.PCIE,
            "warning",
            "generation 1 of 5",
        ),
        (Sensors(nvlinks_down=2), Illness.NVLINK, "warning", "2 NVLinks are down"),
        (Sensors(nvlink_errors=7), Illness.NVLINK, "warning", "7 NVLink errors"),
        (Sensors(temperature=91, slowdown_at=90), Illness.HOT, "warning", "91 °C, slows down"),
        (Sensors(lost=True), Illness.LOST, "critical", "has lost the GPU"),
    ],
    ids=lambda it: str(it)[:40],
)
def test_each_illness(sensors: Sensors, illness: Illness, severity: str, says: str) -> None:
    (symptom,) = symptoms(sensors)
    assert (symptom.illness, symptom.severity.value) == (illness, severity)
    assert says in symptom.says
    assert unusable(sensors) == (severity == "critical")


@pytest.mark.parametrize("xid", [13, 31, 43, 45])
def test_errors_of_programs_are_no_illness(xid: int) -> None:
    assert symptoms(Sensors(xid=xid)) == ()


# -- the exporter -------------------------------------------------------------------------------


def exposed(**metrics: float) -> bytes:
    labels = 'gpu="3",UUID="GPU-a",namespace="ml",pod="train"'
    lines = [f"{name}{{{labels}}} {value}" for name, value in metrics.items()]
    return "\n".join([f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 40", *lines]).encode()


def sick(**metrics: float) -> list[Any]:
    given: dict[Any, Any] = {
        listings.NODES: [node("n", gpu="8")],
        listings.GPU_READINGS: list(readings(exposed(**metrics), "n")),
    }
    return [it for it in findings(snapshot(given)) if it.rule == "gpu-sick"]


def test_a_broken_gpu_is_a_finding_with_the_command_to_cordon_its_node() -> None:
    (finding,) = sick(DCGM_FI_DEV_XID_ERRORS=79, DCGM_FI_DEV_GPU_TEMP=40)
    assert finding.severity is Severity.CRITICAL
    assert "GPU 3 (GPU-a, held by ml/train): Xid 79" in finding.evidence
    assert finding.command == "kvestigate node cordon n --i-understand-this-modifies-cluster"


@pytest.mark.parametrize(
    "metrics",
    [
        {"DCGM_FI_DEV_ROW_REMAP_PENDING": 1},
        {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": 72},
        {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x80},
        {"DCGM_FI_DEV_PCIE_LINK_WIDTH": 4, "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": 16},
        {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 3},
        {"DCGM_FI_DEV_GPU_TEMP": 95, "DCGM_FI_DEV_SLOWDOWN_TEMP": 90},
    ],
    ids=lambda it: next(iter(it)),
)
def test_a_slow_gpu_is_a_warning(metrics: dict[str, float]) -> None:
    (finding,) = sick(**metrics)
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    "metrics",
    [
        {},
        {"DCGM_FI_DEV_XID_ERRORS": 0, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 0},
        {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 9223372036854775792},  # DCGM's "not supported"
        {"DCGM_FI_DEV_XID_ERRORS": 2147483632},
        {"DCGM_FI_DEV_GPU_TEMP": 60, "DCGM_FI_DEV_SLOWDOWN_TEMP": 90},
    ],
    ids=str,
)
def test_nothing_is_found_on_a_healthy_gpu(metrics: dict[str, float]) -> None:
    assert sick(**metrics) == []


# -- hosts --------------------------------------------------------------------------------------

XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
<gpu id="00000000:07:00.0">
 <product_name>NVIDIA H100 80GB HBM3</product_name><uuid>GPU-a</uuid>
 <pci><pci_gpu_link_info>
  <pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>5</current_link_gen></pcie_gen>
  <link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width>
  </link_widths></pci_gpu_link_info></pci>
 <utilization><gpu_util>97 %</gpu_util></utilization>
 <temperature><gpu_temp>60 C</gpu_temp><gpu_temp_slow_threshold>87 C</gpu_temp_slow_threshold>
 </temperature>
 <ecc_errors><volatile><sram_correctable>5</sram_correctable>
  <sram_uncorrectable_parity>0</sram_uncorrectable_parity><dram_uncorrectable>0</dram_uncorrectable>
  </volatile><aggregate><dram_uncorrectable>0</dram_uncorrectable>
  <sram_threshold_exceeded>No</sram_threshold_exceeded></aggregate></ecc_errors>
 <remapped_rows><remapped_row_pending>No</remapped_row_pending>
  <remapped_row_failure>No</remapped_row_failure></remapped_rows>
 <gpu_recovery_action>None</gpu_recovery_action>
 <clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
  <clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>
 </clocks_event_reasons>
</gpu></nvidia_smi_log>
"""


@pytest.mark.parametrize(
    ("before", "after", "illness"),
    [
        ("", "", None),
        ("<dram_uncorrectable>0", "<dram_uncorrectable>4", Illness.ECC),
        ("pending>No", "pending>Yes", Illness.REMAP),
        ("failure>No", "failure>Yes", Illness.REMAP),
        ("slowdown>Not Active", "slowdown>Active", Illness.THROTTLE),
        ("<current_link_width>16x", "<current_link_width>8x", Illness.PCIE),
        ("<current_link_gen>5", "<current_link_gen>3", Illness.PCIE),
        ("<gpu_temp>60 C", "<gpu_temp>88 C", Illness.HOT),
        ("<gpu_temp>60 C", "<gpu_temp>GPU is lost", Illness.LOST),
        ("action>None", "action>Drain and Reset", Illness.RECOVERY),
    ],
)
def test_what_nvidia_smi_says(before: str, after: str, illness: Illness | None) -> None:
    (gpu,) = from_nvidia_smi(XML.replace(before, after, 1) if before else XML)
    assert (gpu.uuid, gpu.index, gpu.model) == ("GPU-a", "0", "NVIDIA H100 80GB HBM3")
    assert [it.illness for it in symptoms(gpu.sensors)] == ([illness] if illness else [])


def test_a_gpu_that_fell_off_the_bus_has_no_element() -> None:
    said = "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot\n"
    lost, *rest = from_nvidia_smi(said)
    assert (lost.uuid, rest) == ("0000:3B:00.0", [])
    assert [it.illness for it in symptoms(lost.sensors)] == [Illness.LOST]
    assert len(from_nvidia_smi(said + XML)) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No devices were found",
        "<nvidia_smi_log><gpu>",
        '<nvidia_smi_log><!DOCTYPE x [<!ENTITY a "b">]></nvidia_smi_log>',
    ],
)
def test_other_output_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="nvidia-smi printed"):
        from_nvidia_smi(text)


def test_what_amd_smi_says() -> None:
    gpus = [
        {"gpu": 0, "ecc": {"total_uncorrectable_count": 0}, "pcie": {"width": 16}},
        {
            "gpu": 1,
            "ecc": {"total_uncorrectable_count": 2},
            "temperature": {"hotspot": {"value": 70, "unit": "C"}, "mem": "N/A"},
        },
    ]
    for document in (gpus, {"gpu_data": gpus}):
        well, broken = read_host(json.dumps(document))
        assert symptoms(well.sensors) == ()
        assert [it.illness for it in symptoms(broken.sensors)] == [Illness.ECC]
    with pytest.raises(InputError, match="amd-smi printed"):
        from_amd_smi("{}")


@given(st.text(), st.integers(0, len(XML)))
def test_no_output_of_a_host_breaks_us(noise: str, at: int) -> None:
    for text in (noise, XML[:at] + noise + XML[at:], "[" + noise, f'[{{"gpu": {at}}}]'):
        try:
            found = read_host(text)
        except InputError:
            continue
        for gpu in found:
            symptoms(gpu.sensors)
