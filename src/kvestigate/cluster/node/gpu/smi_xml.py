"""The answer of `nvidia-smi -q -x`: the parts of it that tools read. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kvestigate.cluster.node.gpu.model import (
    CUDA,
    DRIVER,
    MODELS,
    PCIE_GEN,
    PCIE_WIDTH,
    SLOWDOWN_AT,
    Gpu,
    Reading,
    RowRemap,
    Throttle,
    bus,
    clock_mhz,
    lifetime_errors,
)

_HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n'

Tree = dict[str, "str | Tree"]
"""Names with texts, or with what is below them."""


def document(readings: Sequence[tuple[Gpu, Reading]], now: float) -> str:
    root = Element("nvidia_smi_log")
    stamp = datetime.fromtimestamp(now, UTC).strftime("%a %b %d %H:%M:%S %Y")
    _fill(root, {"timestamp": stamp, "driver_version": DRIVER, "cuda_version": CUDA})
    SubElement(root, "attached_gpus").text = str(len(readings))
    for gpu, shown in readings:
        below = SubElement(root, "gpu", id=bus(gpu))
        _fill(below, _gpu(gpu, shown))
        _instances(below, gpu)
    indent(root, "\t")
    return f"{_HEAD}{tostring(root, encoding='unicode')}\n"


def _fill(element: Element, tree: Tree) -> None:
    for name, value in tree.items():
        below = SubElement(element, name)
        if isinstance(value, str):
            below.text = value
        else:
            _fill(below, value)


def _gpu(gpu: Gpu, now: Reading) -> Tree:
    model = MODELS[gpu.model]
    condition = gpu.condition
    shown = "N/A" if gpu.mig else f"{now.utilization} %"
    return {
        "product_name": model.name,
        "product_architecture": model.architecture.replace("-", " ").title(),
        "uuid": gpu.uuid,
        "minor_number": str(gpu.index),
        "mig_mode": {"current_mig": "Enabled" if gpu.mig else "Disabled"},
        "pci": {
            "pci_bus_id": bus(gpu),
            "pci_gpu_link_info": {
                "pcie_gen": {"max_link_gen": str(PCIE_GEN), "current_link_gen": str(PCIE_GEN)},
                "link_widths": {
                    "max_link_width": f"{PCIE_WIDTH}x",
                    "current_link_width": f"{condition.pcie_width}x",
                },
            },
        },
        "performance_state": "P0" if now.utilization else "P8",
        "clocks_event_reasons": _reasons(gpu, now),
        "fb_memory_usage": {
            "total": f"{model.memory_mib} MiB",
            "used": f"{now.memory_mib} MiB",
            "free": f"{model.memory_mib - now.memory_mib} MiB",
        },
        "utilization": {"gpu_util": shown},
        "ecc_mode": {"current_ecc": "Enabled"},
        "ecc_errors": {
            "volatile": _errors(condition.ecc),
            "aggregate": _errors(lifetime_errors(gpu)),
        },
        "remapped_rows": {
            "remapped_row_corr": "0",
            "remapped_row_unc": str(int(condition.row_remap is not RowRemap.NONE)),
            "remapped_row_pending": _yes(condition.row_remap is RowRemap.PENDING),
            "remapped_row_failure": _yes(condition.row_remap is RowRemap.FAILED),
        },
        "temperature": {
            "gpu_temp": f"{now.temperature} C",
            "gpu_temp_slow_threshold": f"{SLOWDOWN_AT} C",
        },
        "gpu_power_readings": {
            "instant_power_draw": f"{now.watts:.2f} W",
            "current_power_limit": f"{model.watts:.2f} W",
        },
        "clocks": {"sm_clock": f"{clock_mhz(now)} MHz"},
    }


def _reasons(gpu: Gpu, now: Reading) -> Tree:
    active = {f"clocks_event_reason_{each.value}" for each in gpu.condition.throttle}
    names = ["gpu_idle", *(each.value for each in Throttle)]
    idle = not active and not now.utilization
    active |= {"clocks_event_reason_gpu_idle"} if idle else set()
    named = [f"clocks_event_reason_{name}" for name in names]
    return {name: "Active" if name in active else "Not Active" for name in named}


def _errors(count: int) -> Tree:
    return {
        "sram_correctable": "0",
        "sram_uncorrectable_parity": "0",
        "sram_uncorrectable_secded": "0",
        "dram_correctable": "0",
        "dram_uncorrectable": str(count),
    }


def _yes(value: bool) -> str:
    return "Yes" if value else "No"


def _instances(element: Element, gpu: Gpu) -> None:
    """MIG instances: elements of the same name, one below the other."""
    below = SubElement(element, "mig_devices")
    if not gpu.instances:
        below.text = "None"
    for number, instance in enumerate(gpu.instances):
        _fill(
            SubElement(below, "mig_device"),
            {
                "index": str(number),
                "gpu_instance_id": str(number),
                "uuid": instance.uuid,
                "fb_memory_usage": {"total": f"{instance.memory_mib} MiB"},
            },
        )
