"""Utilization and memory of GPUs, from the pods of NVIDIA's DCGM exporter.

The pods are read through the API server, which needs the permission to get `pods/proxy`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.errors import Forbidden, KvestigateError
from kvestigate.snapshot.pods import Pod
from kvestigate.snapshot.prometheus import samples
from kvestigate.snapshot.sickness import Sensors
from kvestigate.snapshot.source import Progress, Reading, Source

SELECTORS = (
    "app.kubernetes.io/name in (dcgm-exporter, nvidia-dcgm-exporter)",
    "app in (dcgm-exporter, nvidia-dcgm-exporter)",
)
PORT = 9400
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
ACTIVITY = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
"""The share of busy time of a MIG instance; `UTILIZATION` is only of whole GPUs."""
MEMORY = "DCGM_FI_DEV_FB_USED"
_INSTANCE = "GPU_I_ID"
_PROFILE = "GPU_I_PROFILE"
_BLANK = 0x7FFFFFF0
"""From here on DCGM's integers mean that a value is not supported or not known."""
_SENSORS = (
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
    "DCGM_FI_DEV_ROW_REMAP_PENDING",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    "DCGM_FI_DEV_PCIE_LINK_WIDTH",
    "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",
    "DCGM_FI_DEV_PCIE_LINK_GEN",
    "DCGM_FI_DEV_PCIE_MAX_LINK_GEN",
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_SLOWDOWN_TEMP",
)
_TOGETHER = 16
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class GpuReading:
    uuid: str
    """`GPU-...`; for a MIG instance with `/` and its number."""
    node: str
    index: str
    """`0`; the GPU's number on its node."""
    utilization: float
    """Percent of the time in which something computed."""
    namespace: str
    """The namespace of its pod; empty if not allocated or unknown to the exporter."""
    pod: str
    container: str
    memory_used_mib: float | None = None
    """None if unknown."""
    profile: str = ""
    """Of a MIG instance: `1g.10gb`."""
    model: str = ""
    sensors: Sensors | None = None
    """What the exporter says of the GPU's health. Of MIG instances, the first of a GPU has it."""


@dataclass(frozen=True, slots=True)
class GpuExporters(Source[GpuReading]):
    """The readings of all exporters that answer; empty without an exporter."""

    @property
    def verb(self) -> str:
        return "get"

    @property
    def name(self) -> str:
        return "pods/proxy"

    async def read(
        self, api: Api, namespace: str, progress: Progress | None
    ) -> Reading[GpuReading]:
        room = asyncio.Semaphore(_TOGETHER)
        pods: dict[tuple[str, str], Pod] = {}
        for selector in SELECTORS:
            page = await api.list(PODS, Selection(None, labels=selector), type=Pod)
            pods |= {(item.metadata.namespace, item.metadata.name): item for item in page.items}

        async def ask(pod: Pod) -> tuple[GpuReading, ...]:
            async with room:
                return tuple(readings(await _exposed(api, pod), pod.spec.node_name))

        running = [pod for pod in pods.values() if pod.status.phase == "Running"]
        per_exporter = await asyncio.gather(*map(ask, running))
        return Reading(
            tuple(
                reading
                for own in per_exporter
                for reading in own
                if not namespace or not reading.namespace or reading.namespace == namespace
            )
        )


async def _exposed(api: Api, pod: Pod) -> bytes:
    """The metrics of one exporter; empty if it does not answer, so that the others still count."""
    where = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}:{PORT}"
    try:
        return await api.request(
            "GET", f"{where}/proxy/metrics", accept="text/plain", timeout=_PATIENCE
        )
    except Forbidden:
        raise
    except KvestigateError:
        return b""


def readings(exposed: bytes, node: str) -> Iterator[GpuReading]:
    """PURE. One reading for each GPU or MIG instance in the metrics of an exporter."""
    memory = {_uuid(sample.labels): sample.value for sample in samples(exposed, MEMORY)}
    health = _health(exposed)
    for labels, utilization in _utilizations(exposed):
        uuid = _uuid(labels)
        metrics = health.pop(labels.get("UUID", ""), None)
        yield GpuReading(
            uuid=uuid,
            node=node or labels.get("Hostname", ""),
            index=labels.get("gpu", ""),
            utilization=utilization,
            memory_used_mib=memory.get(uuid) if uuid else None,
            namespace=labels.get("namespace", ""),
            pod=labels.get("pod", ""),
            container=labels.get("container", ""),
            profile=labels.get(_PROFILE, ""),
            model=labels.get("modelName", ""),
            sensors=_sensors(metrics, utilization) if metrics else None,
        )


def _health(exposed: bytes) -> dict[str, dict[str, float]]:
    """The uuid of a GPU -> the metrics about its health; links of a GPU are added up."""
    found: dict[str, dict[str, float]] = {}
    for metric in _SENSORS:
        for sample in samples(exposed, metric):
            if uuid := sample.labels.get("UUID", ""):
                own = found.setdefault(uuid, {})
                own[metric] = own.get(metric, 0.0) + sample.value
    return found


def _sensors(metrics: Mapping[str, float], utilization: float) -> Sensors:
    def whole(*names: str) -> int | None:
        values = (metrics[name] for name in names if name in metrics)
        value = next(values, None)
        return int(value) if value is not None and 0 <= value < _BLANK else None

    return Sensors(
        xid=whole("DCGM_FI_DEV_XID_ERRORS"),
        ecc_volatile=whole("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"),
        ecc_aggregate=whole("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"),
        remap_pending=bool(whole("DCGM_FI_DEV_ROW_REMAP_PENDING")),
        remap_failed=bool(whole("DCGM_FI_DEV_ROW_REMAP_FAILURE")),
        throttles=whole("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")
        or 0,
        pcie_width=whole("DCGM_FI_DEV_PCIE_LINK_WIDTH"),
        pcie_width_max=whole("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"),
        pcie_gen=whole("DCGM_FI_DEV_PCIE_LINK_GEN"),
        pcie_gen_max=whole("DCGM_FI_DEV_PCIE_MAX_LINK_GEN"),
        nvlink_errors=whole("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
        temperature=metrics.get("DCGM_FI_DEV_GPU_TEMP"),
        slowdown_at=metrics.get("DCGM_FI_DEV_SLOWDOWN_TEMP"),
        utilization=utilization,
    )


def _utilizations(exposed: bytes) -> Iterator[tuple[dict[str, str], float]]:
    """(labels, percent) of each GPU or MIG instance."""
    for sample in samples(exposed, UTILIZATION):
        if _INSTANCE not in sample.labels:
            yield sample.labels, sample.value
    for sample in samples(exposed, ACTIVITY):
        if _INSTANCE in sample.labels:
            yield sample.labels, sample.value * 100


def _uuid(labels: dict[str, str]) -> str:
    whole, instance = labels.get("UUID", ""), labels.get(_INSTANCE, "")
    return f"{whole}/{instance}" if instance else whole
