"""`optimize health`: ask every node with GPUs what is wrong with them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.errors import Forbidden, KvestigateError
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import Hosts, reach
from kvestigate.render.blocks import Block, Cell, Field, Tone, next_command, table, text
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.host_sensors import HostGpu, read_host
from kvestigate.snapshot.ledger.build import NEEDS, ledger
from kvestigate.snapshot.sickness import Symptom, symptoms
from kvestigate.snapshot.source import Progress

SCHEMA = "kvestigate.optimize.health/v1"
_TOGETHER = 32
_PATIENCE = 60.0
_COMMAND = (
    "sh",
    "-c",
    "if command -v nvidia-smi >/dev/null; then exec nvidia-smi -q -x; fi; "
    "if command -v amd-smi >/dev/null; then exec amd-smi metric --json; fi; "
    "echo 'neither nvidia-smi nor amd-smi is installed' >&2; exit 127",
)


@dataclass(frozen=True, slots=True)
class HealthOptions:
    """`optimize health` has no options."""


@dataclass(frozen=True, slots=True)
class SickGpu:
    node: str
    index: str
    uuid: str
    user: str
    """`namespace/pod`; empty if not allocated or unknown."""
    symptoms: tuple[Symptom, ...]

    @property
    def broken(self) -> bool:
        return any(symptom.severity is Severity.CRITICAL for symptom in self.symptoms)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHealth:
    schema: str = SCHEMA
    captured_at: datetime
    server: str
    checked: int
    """GPUs that were asked."""
    nodes: int
    sick: tuple[SickGpu, ...]
    unknown: dict[str, str]
    """Node -> why its GPUs could not be asked."""

    @property
    def to_cordon(self) -> tuple[str, ...]:
        """Nodes with a GPU that must not get new work."""
        return tuple(dict.fromkeys(gpu.node for gpu in self.sick if gpu.broken))


async def check(
    access: Access, via: NodeAccess | None = None, progress: Progress | None = None
) -> GpuHealth:
    """From the exporter where it tells of errors, otherwise from the hosts."""
    async with connect(access) as api:
        snapshot = await take(api, NEEDS, progress)
        book = snapshot.derived(ledger)
        if book.nodes is None or not (book.nodes or book.slices_known):
            gap = snapshot.missing((listings.NODES, listings.DEVICE_SLICES))[0]
            needed = f"{gap.verb} {gap.resource}"
            raise Forbidden(
                f"which nodes have GPUs is unknown: cannot {needed}: {gap.message}",
                hint=f"use a user that may {needed}",
            )
        names = [node.node for node in book.nodes if node.node]
        readings = snapshot.listed.get(listings.GPU_READINGS, ())
        gpus = dict(_measured(readings))
        counts = {node.node: node.count or 0 for node in book.nodes}
        others = [name for name in names if len(gpus.get(name, ())) < counts[name]]
        answers = await _answers(api, via or NodeAccess(), others, required=not gpus)
    unknown: dict[str, str] = {}
    for name, answer in answers.items():
        own = gpus.get(name, ())
        if isinstance(answer, str):
            missing = f"{len(own)} of {counts[name]} GPUs are measured by the exporter; "
            unknown[name] = (missing if own else "") + answer
        else:
            # The exporter does not know GPUs that are lost.
            known = {gpu.uuid for gpu in own}
            gpus[name] = (*own, *(gpu for gpu in answer if gpu.uuid not in known))
    users = {device.uuid: device.user or "" for device in book.devices}
    found = [(name, gpu, symptoms(gpu.sensors)) for name in names for gpu in gpus.get(name, ())]
    return GpuHealth(
        captured_at=snapshot.captured_at,
        server=str(access.server),
        checked=len(found),
        nodes=len(names),
        sick=tuple(
            SickGpu(name, gpu.index, gpu.uuid, users.get(gpu.uuid, ""), signs)
            for name, gpu, signs in found
            if signs
        ),
        unknown=unknown,
    )


async def _answers(
    api: Api, via: NodeAccess, names: list[str], *, required: bool
) -> dict[str, tuple[HostGpu, ...] | str]:
    """What hosts say. If none can be reached, that is an error only if nothing else is known."""
    if not names:
        return {}
    try:
        hosts = await reach(api, via)
    except KvestigateError as error:
        if required:
            raise
        return dict.fromkeys(names, error.message)
    return await _ask(hosts, names)


def _measured(readings: Iterable[GpuReading]) -> list[tuple[str, tuple[HostGpu, ...]]]:
    """Nodes whose exporter tells of errors: their hosts need not be asked."""
    by_node: dict[str, list[HostGpu]] = {}
    for reading in readings:
        sensors = reading.sensors
        if sensors is not None and (sensors.xid, sensors.ecc_volatile) != (None, None):
            gpu = HostGpu(reading.uuid.partition("/")[0], reading.index, reading.model, sensors)
            by_node.setdefault(reading.node, []).append(gpu)
    return [(node, tuple(gpus)) for node, gpus in by_node.items()]


async def _ask(hosts: Hosts, names: Iterable[str]) -> dict[str, tuple[HostGpu, ...] | str]:
    """Node -> its GPUs, or why they could not be asked."""
    room = asyncio.Semaphore(_TOGETHER)

    async def one(name: str) -> tuple[HostGpu, ...] | str:
        host = hosts.nodes.get(name)
        if host is None:
            return hosts.unreachable.get(name, "the node no longer exists")
        async with room:
            try:
                done = await host.run(_COMMAND, timeout=_PATIENCE)
                text = (done.stdout + done.stderr).decode("utf-8", "replace")
                return read_host(text)
            except KvestigateError as error:
                return error.message

    names = list(names)
    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))


def health_blocks(health: GpuHealth) -> Sequence[Block]:
    blocks: list[Block] = []
    if health.sick:
        blocks.append(
            table(
                [(gpu, symptom) for gpu in health.sick for symptom in gpu.symptoms],
                Field("node", lambda row: row[0].node),
                Field("gpu", lambda row: row[0].index or "-", number=True),
                Field("severity", lambda row: Cell(row[1].severity.value, row[1].severity.tone)),
                Field("symptom", lambda row: row[1].says),
                Field("held by", lambda row: row[0].user or "-"),
                Field("uuid", lambda row: row[0].uuid, wide=True),
            )
        )
    blocks += [
        text(f"GPUs of {node}: unknown ({why})", Tone.WARN) for node, why in health.unknown.items()
    ]
    asked = f"{counted(health.checked, 'GPU')} on {counted(health.nodes, 'node')}"
    broken = sum(gpu.broken for gpu in health.sick)
    if health.sick:
        blocks.append(text(f"{len(health.sick)} of {asked} are sick, {broken} must not be used"))
    elif not health.nodes:
        blocks.append(text("no node has GPUs"))
    elif health.checked:
        blocks.append(text(f"no problems found on {asked}", Tone.GOOD))
    if health.to_cordon:
        blocks.append(text("keep new pods away from the broken GPUs:"))
    blocks += [
        next_command(
            "", f"kvestigate node cordon {node} --i-understand-this-modifies-cluster", Tone.STRONG
        )
        for node in health.to_cordon
    ]
    return blocks
