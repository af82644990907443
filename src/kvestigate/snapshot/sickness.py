"""What is wrong with a GPU, from its sensors. Pure.

The same rules hold wherever the figures come from: the DCGM exporter, `nvidia-smi -q -x`, or
`amd-smi`. A figure that is not reported is None, and says nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from kvestigate.render.severity import Severity

_BUSY = 1.0
"""Percent of utilization from which a GPU runs its PCIe link at full speed."""


class Illness(enum.Enum):
    LOST = "lost"
    XID = "xid"
    ECC = "ecc"
    REMAP = "row-remap"
    RECOVERY = "recovery"
    THROTTLE = "throttle"
    PCIE = "pcie"
    NVLINK = "nvlink"
    HOT = "temperature"


XIDS: dict[int, tuple[Severity, str]] = {
    48: (Severity.CRITICAL, "double-bit ECC error"),
    62: (Severity.CRITICAL, "the GPU's microcontroller halted"),
    63: (Severity.WARNING, "a row of memory was remapped"),
    64: (Severity.CRITICAL, "a row of memory could not be remapped"),
    74: (Severity.CRITICAL, "NVLink error"),
    79: (Severity.CRITICAL, "the GPU has fallen off the bus"),
    92: (Severity.WARNING, "high rate of single-bit ECC errors"),
    94: (Severity.WARNING, "contained ECC error"),
    95: (Severity.CRITICAL, "uncontained ECC error"),
    119: (Severity.CRITICAL, "the GPU's system processor (GSP) does not answer"),
    120: (Severity.CRITICAL, "the GPU's system processor (GSP) failed"),
    140: (Severity.CRITICAL, "unrecovered ECC error"),
    143: (Severity.CRITICAL, "the GPU could not be initialized"),
    149: (Severity.CRITICAL, "fatal NVLink error"),
}
"""Xid errors of the hardware. Others, as 13, 31 and 43, come from faults of programs."""

THROTTLES = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Bits of NVML's clock event reasons that mean trouble; idleness and power caps do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensors:
    """None: not reported."""

    lost: bool = False
    """The driver knows the GPU and cannot reach it."""
    xid: int | None = None
    """The last Xid error; 0 for none."""
    ecc_volatile: int | None = None
    """Uncorrectable errors since the driver was loaded."""
    ecc_aggregate: int | None = None
    """Uncorrectable errors in the GPU's life."""
    remap_pending: bool = False
    remap_failed: bool = False
    recovery: str = ""
    """What the driver asks for: `Reset`, `Reboot`; empty for nothing."""
    throttles: int = 0
    """Bits of `THROTTLES`."""
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_gen: int | None = None
    pcie_gen_max: int | None = None
    nvlink_errors: int | None = None
    nvlinks_down: int = 0
    temperature: float | None = None
    slowdown_at: float | None = None
    """The temperature from which the GPU slows down."""
    utilization: float | None = None


@dataclass(frozen=True, slots=True)
class Symptom:
    illness: Illness
    severity: Severity
    says: str


def symptoms(sensors: Sensors) -> tuple[Symptom, ...]:
    """What is wrong with a GPU, the most severe first."""
    found = [*_broken(sensors), *_impaired(sensors)]
    return tuple(sorted(found, key=lambda symptom: symptom.severity is not Severity.CRITICAL))


def unusable(sensors: Sensors) -> bool:
    """Whether new work must not be placed on the GPU."""
    return any(symptom.severity is Severity.CRITICAL for symptom in symptoms(sensors))


def _broken(sensors: Sensors) -> Iterator[Symptom]:
    if sensors.lost:
        yield Symptom(
            Illness.LOST, Severity.CRITICAL, "the driver has lost the GPU (fallen off the bus)"
        )
    if sensors.xid in XIDS:
        severity, meaning = XIDS[sensors.xid]
        yield Symptom(Illness.XID, severity, f"Xid {sensors.xid}: {meaning}")
    if sensors.ecc_volatile:
        lifetime = f", {sensors.ecc_aggregate} in its life" if sensors.ecc_aggregate else ""
        words = f"{sensors.ecc_volatile} uncorrectable ECC errors since the driver was loaded"
        yield Symptom(Illness.ECC, Severity.CRITICAL, f"{words}{lifetime}")
    if sensors.remap_failed:
        words = "a row of memory could not be remapped: replace the GPU"
        yield Symptom(Illness.REMAP, Severity.CRITICAL, words)
    elif sensors.remap_pending:
        words = "a row remap is pending: reset the GPU"
        yield Symptom(Illness.REMAP, Severity.WARNING, words)
    if sensors.recovery:
        words = f"the driver asks for: {sensors.recovery}"
        yield Symptom(Illness.RECOVERY, Severity.CRITICAL, words)


def _impaired(sensors: Sensors) -> Iterator[Symptom]:
    slow = [name for bit, name in THROTTLES.items() if sensors.throttles & bit]
    if slow:
        yield Symptom(Illness.THROTTLE, Severity.WARNING, f"throttled: {', '.join(slow)}")
    width, full = sensors.pcie_width, sensors.pcie_width_max
    if width is not None and full is not None and 0 < width < full:
        words = f"PCIe link has {width} of {full} lanes"
        yield Symptom(Illness.PCIE, Severity.WARNING, words)
    gen, newest = sensors.pcie_gen, sensors.pcie_gen_max
    # An idle GPU lets its link fall back to save power.
    busy = (sensors.utilization or 0) >= _BUSY
    if busy and gen is not None and newest is not None and 0 < gen < newest:
        words = f"PCIe link runs at generation {gen} of {newest}"
        yield Symptom(Illness.PCIE, Severity.WARNING, words)
    if sensors.nvlinks_down:
        words = f"{sensors.nvlinks_down} NVLinks are down"
        yield Symptom(Illness.NVLINK, Severity.WARNING, words)
    elif sensors.nvlink_errors:
        words = f"{sensors.nvlink_errors} NVLink errors"
        yield Symptom(Illness.NVLINK, Severity.WARNING, words)
    heat, limit = sensors.temperature, sensors.slowdown_at
    if heat is not None and limit and heat >= limit:
        words = f"{heat:.0f} °C, slows down from {limit:.0f} °C"
        yield Symptom(Illness.HOT, Severity.WARNING, words)
