"""NVIDIA's DCGM exporter for GPUs that are simulated.

Its image could do nothing here: there is no driver. So a container of it just waits, and its
node answers in its place, at the port and with the figures that everybody expects of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kvestigate.aio.clock import Clock
from kvestigate.cluster.node.gpu.allocation import Allocation
from kvestigate.cluster.node.gpu.model import MODELS, Gpu, Reading, bus, clock_mhz, reading
from kvestigate.http.message import Request, Response
from kvestigate.http.server import Server, serve

PORT = 9400
_TEXT = [("content-type", "text/plain; version=0.0.4; charset=utf-8")]
_MEMORY_MHZ = 1593
_GOODBYE = 1.0


class _Device(NamedTuple):
    """A GPU, or an instance of one, at a moment."""

    labels: tuple[tuple[str, str], ...]
    now: Reading
    memory_mib: int
    """Total memory."""
    divided: bool
    """Whether it is a MIG instance: those have fewer metrics."""


# Metric -> what it says, and its value; instances have only those of the second table.
_OF_GPUS: dict[str, tuple[str, Callable[[_Device], str]]] = {
    "DCGM_FI_DEV_SM_CLOCK": (
        "SM clock frequency (in MHz).",
        lambda device: str(clock_mhz(device.now)),
    ),
    "DCGM_FI_DEV_MEM_CLOCK": ("Memory clock frequency (in MHz).", lambda _: str(_MEMORY_MHZ)),
    "DCGM_FI_DEV_GPU_TEMP": ("GPU temperature (in C).", lambda device: str(device.now.temperature)),
    "DCGM_FI_DEV_POWER_USAGE": ("Power draw (in W).", lambda device: f"{device.now.watts:.6f}"),
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


def exposition(gpus: Iterable[Gpu], node: str, now: float) -> str:
    """What the exporter of a node says: PURE."""
    devices = [device for gpu in gpus for device in _devices(gpu, node, now)]
    lines: list[str] = []
    for table, shown in (
        (_OF_GPUS, [device for device in devices if not device.divided]),
        (_OF_ALL, devices),
    ):
        for metric, (says, value) in table.items():
            lines += (f"# HELP {metric} {says}", f"# TYPE {metric} gauge")
            lines += (f"{metric}{{{_written(device.labels)}}} {value(device)}" for device in shown)
    return "\n".join(lines) + "\n"


def _devices(gpu: Gpu, node: str, now: float) -> Iterator[_Device]:
    shown, model = reading(gpu, now), MODELS[gpu.model]
    about = (
        ("gpu", str(gpu.index)),
        ("UUID", gpu.uuid),
        ("pci_bus_id", bus(gpu)),
        ("device", f"nvidia{gpu.index}"),
        ("modelName", model.name),
        ("Hostname", node),
    )
    if not gpu.mig:
        yield _Device((*about, *_user(gpu.user)), shown, model.memory_mib, divided=False)
    for number, instance in enumerate(gpu.instances):
        part = (("GPU_I_PROFILE", instance.profile), ("GPU_I_ID", str(number)))
        share = instance.memory_mib
        used = shown.memory_mib * share // model.memory_mib if instance.user else 0
        does = Reading(
            shown.utilization if instance.user else 0,
            used,
            shown.temperature,
            shown.watts,
            shown.fan,
        )
        yield _Device((*about, *part, *_user(instance.user)), does, share, divided=True)


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
        text = exposition(self._devices.gpus, self._node, self._clock.now())
        return Response(200, list(_TEXT), text.encode())
