"""NVIDIA's DCGM exporter for GPUs that are simulated.

Its image could do nothing here: there is no driver. So a container of it just waits, and its
node answers in its place, at the port and with the figures that everybody expects of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from kvestigate.aio.clock import Clock
from kvestigate.cluster.node.gpu.allocation import Allocation
from kvestigate.cluster.node.gpu.model import (
    MODELS,
    PCIE_GEN,
    PCIE_WIDTH,
    SLOWDOWN_AT,
    Gpu,
    Reading,
    RowRemap,
    bus,
    clock_mhz,
    lifetime_errors,
    reading,
    throttle_bits,
)
from kvestigate.http.message import Request, Response
from kvestigate.http.server import Server, serve

PORT = 9400
_TEXT = [("content-type", "text/plain; version=0.0.4; charset=utf-8")]
_MEMORY_MHZ = 1593
_GOODBYE = 1.0


class _Device(NamedTuple):
    """A GPU, or an instance of one, at a moment."""

    gpu: Gpu
    joules: float
    """Used since the exporter was asked first."""
    labels: tuple[tuple[str, str], ...]
    now: Reading
    memory_mib: int
    """Total memory."""


# Metric -> what it says, and its value. Instances have only those of the last table, and GPUs that
# are divided only those of the first two, as they are not used as a whole.
_OF_BOARDS: dict[str, tuple[str, Callable[[_Device], str]]] = {
    "DCGM_FI_DEV_GPU_TEMP": ("GPU temperature (in C).", lambda device: str(device.now.temperature)),
    "DCGM_FI_DEV_SLOWDOWN_TEMP": ("Slowdown temperature (in C).", lambda _: str(SLOWDOWN_AT)),
    "DCGM_FI_DEV_POWER_USAGE": ("Power draw (in W).", lambda device: f"{device.now.watts:.6f}"),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": (
        "Total energy consumption since boot (in mJ).",
        lambda device: str(round(device.joules * 1000)),
    ),
    "DCGM_FI_DEV_XID_ERRORS": (
        "Value of the last XID error encountered.",
        lambda device: str(device.gpu.condition.xid),
    ),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": (
        "Total number of double-bit volatile ECC errors.",
        lambda device: str(device.gpu.condition.ecc),
    ),
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": (
        "Total number of double-bit persistent ECC errors.",
        lambda device: str(lifetime_errors(device.gpu)),
    ),
    "DCGM_FI_DEV_ROW_REMAP_PENDING": (
        "Whether remapping of rows is pending.",
        lambda device: str(int(device.gpu.condition.row_remap is RowRemap.PENDING)),
    ),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": (
        "Whether remapping of rows has failed.",
        lambda device: str(int(device.gpu.condition.row_remap is RowRemap.FAILED)),
    ),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": (
        "Current clock event reasons (bitmask).",
        lambda device: str(throttle_bits(device.gpu, device.now)),
    ),
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": (
        "PCIe current link width.",
        lambda device: str(device.gpu.condition.pcie_width),
    ),
    "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": ("PCIe max link width.", lambda _: str(PCIE_WIDTH)),
    "DCGM_FI_DEV_PCIE_LINK_GEN": ("PCIe current link generation.", lambda _: str(PCIE_GEN)),
    "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": ("PCIe max link generation.", lambda _: str(PCIE_GEN)),
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": (
        "Total number of NVLink recovery errors.",
        lambda device: str(device.gpu.condition.nvlink_errors),
    ),
}
_OF_GPUS: dict[str, tuple[str, Callable[[_Device], str]]] = {
    "DCGM_FI_DEV_SM_CLOCK": (
        "SM clock frequency (in MHz).",
        lambda device: str(clock_mhz(device.now)),
    ),
    "DCGM_FI_DEV_MEM_CLOCK": ("Memory clock frequency (in MHz).", lambda _: str(_MEMORY_MHZ)),
    "DCGM_FI_DEV_GPU_UTIL": ("GPU utilization (in %).", lambda device: str(device.now.utilization)),
    "DCGM_FI_DEV_MEM_COPY_UTIL": (
        "Memory utilization (in %).",
        lambda device: str(device.now.utilization // 2),
    ),
}
_OF_ALL: dict[str, tuple[str, Callable[[_Device], str]]] = {
    "DCGM_FI_DEV_FB_FREE": ("Framebuffer memory free (in MiB).", lambda device: str(_free(device))),
    "DCGM_FI_DEV_FB_USED": (
        "Framebuffer memory used (in MiB).",
        lambda device: str(device.now.memory_mib),
    ),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": (
        "Ratio of time the graphics engine is active.",
        lambda device: f"{device.now.utilization / 100:.6f}",
    ),
}


def exposition(
    gpus: Iterable[Gpu], node: str, now: float, joules: Mapping[str, float] | None = None
) -> str:
    """What the exporter of a node says: PURE. `joules` are what each GPU has used, by uuid."""
    used = joules or {}
    boards: list[_Device] = []
    instances: list[_Device] = []
    for gpu in gpus:
        if not gpu.condition.lost:
            boards.append(_board(gpu, node, now, used.get(gpu.uuid, 0.0)))
            instances += _instances(boards[-1])
    whole = [device for device in boards if not device.gpu.mig]
    lines: list[str] = []
    for table, shown in ((_OF_BOARDS, boards), (_OF_GPUS, whole), (_OF_ALL, [*whole, *instances])):
        for metric, (says, value) in table.items():
            lines += (f"# HELP {metric} {says}", f"# TYPE {metric} gauge")
            lines += (f"{metric}{{{_written(device.labels)}}} {value(device)}" for device in shown)
    return "\n".join(lines) + "\n"


def _board(gpu: Gpu, node: str, now: float, joules: float) -> _Device:
    model = MODELS[gpu.model]
    about = (
        ("gpu", str(gpu.index)),
        ("UUID", gpu.uuid),
        ("pci_bus_id", bus(gpu)),
        ("device", f"nvidia{gpu.index}"),
        ("modelName", model.name),
        ("Hostname", node),
    )
    return _Device(gpu, joules, (*about, *_user(gpu.user)), reading(gpu, now), model.memory_mib)


def _instances(board: _Device) -> Iterator[_Device]:
    shown = board.now
    for number, instance in enumerate(board.gpu.instances):
        part = (("GPU_I_PROFILE", instance.profile), ("GPU_I_ID", str(number)))
        share = instance.memory_mib
        does = Reading(
            shown.utilization if instance.user else 0,
            shown.memory_mib * share // board.memory_mib if instance.user else 0,
            shown.temperature,
            shown.watts,
            shown.fan,
        )
        yield board._replace(
            labels=(*board.labels, *part, *_user(instance.user)), now=does, memory_mib=share
        )


def _user(user: str) -> tuple[tuple[str, str], ...]:
    if not user:
        return ()
    namespace, pod, container = user.split("/")
    return ("container", container), ("namespace", namespace), ("pod", pod)


def _free(device: _Device) -> int:
    return max(device.memory_mib - device.now.memory_mib, 0)


def _written(labels: Iterable[tuple[str, str]]) -> str:
    # Nothing in them needs an escape: they are names of Kubernetes, of models and numbers.
    return ",".join(f'{name}="{value}"' for name, value in labels)


class GpuFigures:
    """Answers for the exporters of one node; listens from the first request for its address."""

    def __init__(self, node: str, devices: Allocation, clock: Clock) -> None:
        self._node = node
        self._devices = devices
        self._clock = clock
        self._opening = asyncio.Lock()
        self._server: Server | None = None
        self._joules: dict[str, float] = {}
        self._read_at: float | None = None

    async def address(self) -> tuple[str, int]:
        async with self._opening:
            if self._server is None:
                self._server = await serve(self.handle)
        return self._server.address

    async def aclose(self) -> None:
        if self._server is not None:
            await self._server.close(grace=_GOODBYE)

    async def handle(self, request: Request) -> Response:
        if request.path == "/health":
            return Response(200, list(_TEXT), b"OK")
        if request.path != "/metrics":
            return Response(404, list(_TEXT), b"404 page not found\n")
        gpus, now = self._devices.gpus, self._clock.now()
        self._meter(gpus, now)
        text = exposition(gpus, self._node, now, self._joules)
        return Response(200, list(_TEXT), text.encode())

    def _meter(self, gpus: Iterable[Gpu], now: float) -> None:
        """Add up what each GPU used since the last request."""
        seconds = max(0.0, now - self._read_at) if self._read_at is not None else 0.0
        self._read_at = now
        for gpu in gpus:
            used = reading(gpu, now).watts * seconds
            self._joules[gpu.uuid] = self._joules.get(gpu.uuid, 0.0) + used
