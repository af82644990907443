"""GPUs that are broken or run slower than they should. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.sickness import symptoms


@rule(
    "gpu-sick",
    "A GPU reports errors, or runs slower than it should.",
    listings.GPU_READINGS,
)
def sick(cluster: Cluster) -> Iterator[Fault]:
    """Xid and ECC errors, row remaps, throttling, links and temperature, from the exporter."""
    by_node: dict[str, list[GpuReading]] = {}
    for reading in cluster.of(listings.GPU_READINGS):
        if reading.sensors is not None and symptoms(reading.sensors):
            by_node.setdefault(reading.node, []).append(reading)
    for node, readings in by_node.items():
        broken = any(_is_broken(reading) for reading in readings)
        yield Fault(
            severity=Severity.CRITICAL if broken else Severity.WARNING,
            subject=Subject("Node", node),
            evidence=" ".join(map(_says, readings)),
            why="Work on these GPUs fails or is lost; the device plugin may go on offering them."
            if broken
            else "Work on these GPUs takes longer, and all GPUs of a job wait for the slowest.",
            command=f"kvestigate node cordon {node} --i-understand-this-modifies-cluster"
            if broken
            else f"kvestigate describe node {node}",
        )


def _is_broken(reading: GpuReading) -> bool:
    found = symptoms(reading.sensors) if reading.sensors is not None else ()
    return any(symptom.severity is Severity.CRITICAL for symptom in found)


def _says(reading: GpuReading) -> str:
    found = symptoms(reading.sensors) if reading.sensors is not None else ()
    holder = f", held by {reading.namespace}/{reading.pod}" if reading.pod else ""
    what = "; ".join(symptom.says for symptom in found)
    gpu, instance, _ = reading.uuid.partition("/")
    return f"GPU {reading.index} ({gpu}{'' if instance else holder}): {what}."


RULES = (sick,)
