"""What GPUs are doing, where NVIDIA's DCGM exporter runs beside them.

Its pods are asked through the API server, so whoever may use `pods/proxy` needs no other way
into the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.errors import Forbidden, KvestigateError
from kvestigate.snapshot.exposition import samples
from kvestigate.snapshot.objects import Pod
from kvestigate.snapshot.source import Progress, Source

SELECTORS = (
    "app.kubernetes.io/name in (dcgm-exporter, nvidia-dcgm-exporter)",
    "app in (dcgm-exporter, nvidia-dcgm-exporter)",
)
PORT = 9400
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
ACTIVITY = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
"""The share of time that counts as work where a GPU is divided: the other is of whole ones."""
MEMORY = "DCGM_FI_DEV_FB_USED"
_INSTANCE = "GPU_I_ID"
_TOGETHER = 16
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class GpuReading:
    uuid: str
    """`GPU-...`; of an instance (MIG) with its number behind a slash."""
    node: str
    index: str
    """`0`; the GPU's number on its node."""
    utilization: float
    """Percent of the time in which something computed."""
    namespace: str
    """Of the pod that has it; empty if none has, or the exporter does not say."""
    pod: str
    container: str
    memory_used_mib: float | None = None
    """None if that is not told."""


@dataclass(frozen=True, slots=True)
class GpuExporters(Source[GpuReading]):
    """A reading of each GPU of each exporter that answers; none where there is no exporter."""

    @property
    def verb(self) -> str:
        return "get"

    @property
    def name(self) -> str:
        return "pods/proxy"

    async def read(
        self, api: Api, namespace: str, progress: Progress | None
    ) -> tuple[GpuReading, ...]:
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
        return tuple(
            reading
            for own in per_exporter
            for reading in own
            if not namespace or not reading.namespace or reading.namespace == namespace
        )


async def _exposed(api: Api, pod: Pod) -> bytes:
    """Nothing from an exporter that does not answer: the others tell of their nodes."""
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
    """PURE. One for each GPU, or instance of one, in what an exporter on `node` said."""
    memory = {_uuid(sample.labels): sample.value for sample in samples(exposed, MEMORY)}
    for labels, utilization in _utilizations(exposed):
        uuid = _uuid(labels)
        yield GpuReading(
            uuid=uuid,
            node=node or labels.get("Hostname", ""),
            index=labels.get("gpu", ""),
            utilization=utilization,
            memory_used_mib=memory.get(uuid) if uuid else None,
            namespace=labels.get("namespace", ""),
            pod=labels.get("pod", ""),
            container=labels.get("container", ""),
        )


def _utilizations(exposed: bytes) -> Iterator[tuple[dict[str, str], float]]:
    """Labels and percent."""
    for sample in samples(exposed, UTILIZATION):
        if _INSTANCE not in sample.labels:
            yield sample.labels, sample.value
    for sample in samples(exposed, ACTIVITY):
        if _INSTANCE in sample.labels:
            yield sample.labels, sample.value * 100


def _uuid(labels: dict[str, str]) -> str:
    whole, instance = labels.get("UUID", ""), labels.get(_INSTANCE, "")
    return f"{whole}/{instance}" if instance else whole
