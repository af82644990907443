"""The sensors of GPUs from `nvidia-smi -q -x` and from `amd-smi metric --json`. Pure.

The output comes from a host, and a host may be in the hands of somebody else: an answer that is
too large, or that declares entities, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import msgspec

from kvestigate.errors import InputError
from kvestigate.snapshot.sickness import THROTTLES, Sensors

_LARGEST = 16 * 1024 * 1024
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LOST = re.compile(
    r"(?:handle for GPU\s*|GPU at\s+)(?P<bus>[0-9A-Fa-f:]+\.[0-9A-Fa-f]+)\b.*(?:lost|Unknown Error)"
)
_REASONS = {
    "hw_slowdown": 0x8,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}


@dataclass(frozen=True, slots=True)
class HostGpu:
    uuid: str
    """`GPU-...`; of a GPU that the driver has lost, its PCI address."""
    index: str
    model: str
    sensors: Sensors


def from_nvidia_smi(text: str) -> tuple[HostGpu, ...]:
    """The GPUs of a host. Raises InputError for output that is not XML of `nvidia-smi`."""
    lost = [
        HostGpu(match["bus"], "", "", Sensors(lost=True))
        for line in text.splitlines()
        if (match := _LOST.search(line))
    ]
    start = text.find("<nvidia_smi_log")
    if start < 0:
        if lost:
            return tuple(lost)
        raise InputError("nvidia-smi printed no XML", hint="run `nvidia-smi -q -x` on the host")
    end = text.rfind("</nvidia_smi_log>")
    body = text[start : end + len("</nvidia_smi_log>")] if end > 0 else text[start:]
    if len(body) > _LARGEST or "<!ENTITY" in body or "<!DOCTYPE" in body:
        raise InputError("nvidia-smi printed XML that is too large or declares entities")
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise InputError(f"nvidia-smi printed XML that cannot be read: {error}") from None
    return (*(_gpu(each, at) for at, each in enumerate(root.findall("gpu"))), *lost)


def _gpu(gpu: ElementTree.Element, at: int) -> HostGpu:
    def text(path: str) -> str:
        return (gpu.findtext(path) or "").strip()

    def number(*paths: str) -> float | None:
        for path in paths:
            if match := _NUMBER.match(text(path)):
                return float(match[0])
        return None

    def whole(*paths: str) -> int | None:
        value = number(*paths)
        return None if value is None else int(value)

    link = "pci/pci_gpu_link_info"
    recovery = text("gpu_recovery_action")
    return HostGpu(
        uuid=text("uuid") or gpu.get("id", ""),
        index=str(at),
        model=text("product_name"),
        sensors=Sensors(
            lost=any((part.text or "").strip() == "GPU is lost" for part in gpu.iter()),
            ecc_volatile=_errors(gpu, "volatile"),
            ecc_aggregate=_errors(gpu, "aggregate"),
            remap_pending=text("remapped_rows/remapped_row_pending") == "Yes",
            remap_failed=text("remapped_rows/remapped_row_failure") == "Yes",
            recovery="" if recovery in ("", "None", "N/A") else recovery,
            throttles=_throttles(gpu),
            pcie_width=whole(f"{link}/link_widths/current_link_width"),
            pcie_width_max=whole(f"{link}/link_widths/max_link_width"),
            pcie_gen=whole(f"{link}/pcie_gen/current_link_gen"),
            pcie_gen_max=whole(f"{link}/pcie_gen/max_link_gen"),
            temperature=number("temperature/gpu_temp"),
            slowdown_at=number("temperature/gpu_temp_slow_threshold"),
            utilization=number("utilization/gpu_util"),
        ),
    )


def _errors(gpu: ElementTree.Element, since: str) -> int | None:
    """Uncorrectable errors of all memories; drivers differ in how they are called."""
    counts = [
        int(text)
        for counter in gpu.findall(f"ecc_errors/{since}/*")
        if "uncorrectable" in counter.tag
        and "threshold" not in counter.tag
        and (text := (counter.text or "").strip()).isdigit()
    ]
    return sum(counts) if counts else None


def _throttles(gpu: ElementTree.Element) -> int:
    bits = 0
    for group in ("clocks_event_reasons", "clocks_throttle_reasons"):
        for reason in gpu.findall(f"{group}/*"):
            name = reason.tag.removeprefix(f"{group}_").removeprefix("clocks_event_reason_")
            name = name.removeprefix("clocks_throttle_reason_")
            if (reason.text or "").strip() == "Active":
                bits |= _REASONS.get(name, 0)
    return bits & sum(THROTTLES)


def from_amd_smi(text: str) -> tuple[HostGpu, ...]:
    """The GPUs of a host. Raises InputError for output that is not JSON of `amd-smi`."""
    if len(text) > _LARGEST:
        raise InputError("amd-smi printed more than can be read")
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise InputError(
            "amd-smi printed no JSON", hint="run `amd-smi metric --json` on the host"
        ) from None
    listed = document.get("gpu_data") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        raise InputError("amd-smi printed JSON without a list of GPUs")
    return tuple(_amd(each) for each in listed if isinstance(each, dict))


def _amd(gpu: Mapping[str, Any]) -> HostGpu:
    def number(*path: str) -> float | None:
        value: Any = gpu
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):
            value = value.get("value")
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if usable else None

    def whole(*path: str) -> int | None:
        value = number(*path)
        return None if value is None else int(value)

    index = str(gpu.get("gpu", ""))
    return HostGpu(
        uuid=str(gpu.get("uuid") or f"gpu {index}"),
        index=index,
        model="",
        sensors=Sensors(
            ecc_volatile=whole("ecc", "total_uncorrectable_count"),
            pcie_width=whole("pcie", "width"),
            pcie_width_max=whole("pcie", "max_width"),
            temperature=number("temperature", "hotspot"),
            slowdown_at=number("temperature", "hotspot_limit"),
            utilization=number("usage", "gfx_activity"),
        ),
    )


def read_host(text: str) -> tuple[HostGpu, ...]:
    """The GPUs of a host, whichever of the two programs answered."""
    amd = text.lstrip()[:1] in ("[", "{")
    return from_amd_smi(text) if amd else from_nvidia_smi(text)
