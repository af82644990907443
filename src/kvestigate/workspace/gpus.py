"""Which GPUs of a node are free, and for whom the others are. Pure.

`nvidia-smi` tells of devices and processes, the kubelet's records which pod was given which
device, or else the environment of containers that some were, markers which workspace reserved
which. A GPU that none of them claims is free, unless
Kubernetes has given away more than could be accounted for: then it may be any.
"""

from __future__ import annotations

import csv
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from kvestigate.errors import Conflict, InputError
from kvestigate.snapshot.gpus import occupied
from kvestigate.workspace.marker import GpuId
from kvestigate.workspace.spec import GpuSpec

GPU_FIELDS = "index,uuid,name,memory.total,memory.used,utilization.gpu"
APP_FIELDS = "gpu_uuid,pid"
RESOURCE = "nvidia.com/gpu"
GIVEN = "NVIDIA_VISIBLE_DEVICES"


class Use(enum.StrEnum):
    """What keeps a GPU from being taken."""

    FREE = "free"
    WORKSPACE = "workspace"
    POD = "pod"
    PROCESS = "process"
    UNSURE = "unsure"
    """Pods were given more GPUs than we know of: it may be one of those."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A GPU as `nvidia-smi` tells of it."""

    index: int
    uuid: str
    model: str
    memory_total_mib: int
    memory_used_mib: int
    utilization: float | None
    """Percent; None if the GPU does not tell."""


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    uuid: str
    model: str
    memory_total_mib: int
    memory_used_mib: int
    utilization: float | None
    use: Use
    holder: str = ""
    """`namespace/pod`, the name of a workspace or `pid 17`, if that is all that is known."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Who has which GPUs of one node."""

    workspaces: Mapping[str, str]
    """UUID -> name of the workspace."""
    pods: Mapping[str, str]
    """UUID -> namespace/pod, as far as that is known."""
    pids: Mapping[str, int]
    """UUID -> a process that uses it."""
    given: Mapping[str, int]
    """UUID -> a process of a container that was given it, whether or not it uses it."""
    requested: int
    """How many pods have asked for on that node."""


def parse_readings(text: str) -> tuple[Reading, ...]:
    """What `nvidia-smi --query-gpu` says, without header and units."""
    return tuple(
        Reading(int(row[0]), row[1], row[2], _mib(row[3]), _mib(row[4]), _percent(row[5]))
        for row in _rows(text, 6)
        if row[0].isdigit()
    )


def parse_processes(text: str) -> dict[str, int]:
    """UUID -> the first process that `nvidia-smi --query-compute-apps` names."""
    found: dict[str, int] = {}
    for uuid, pid in _rows(text, 2):
        if pid.isdigit():
            found.setdefault(uuid, int(pid))
    return found


def parse_given(text: str) -> dict[str, int]:
    """UUID -> a process in whose environment NVIDIA's device plugin has put it.

    A line has the file that it was found in: `/proc/17/environ:NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b`.
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        file, _, said = line.partition(":")
        pid = "".join(file.split("/")[2:3])
        if pid.isdigit() and pid.isascii():
            for uuid in said.removeprefix(f"{GIVEN}=").split(","):
                found.setdefault(uuid, int(pid))
    return found


def parse_checkpoint(text: str, pods: Mapping[str, str]) -> dict[str, str]:
    """UUID -> namespace/pod from the kubelet's own record; `pods` has the names by uid.

    Records of pods that are gone stay until the kubelet needs their devices, and do not count.
    """
    try:
        data = msgspec.json.decode(text, type=_Checkpoint).data
    except msgspec.DecodeError:
        return {}
    return {
        device: pods[entry.pod]
        for entry in data.entries or ()
        if entry.resource == RESOURCE and entry.pod in pods
        for device in _devices(entry.devices)
    }


def judge(readings: Iterable[Reading], claims: Claims) -> tuple[Gpu, ...]:
    """Each GPU with what keeps it from being taken."""
    judged = [(it, *_use(it, claims)) for it in readings]
    taken = sum(use in (Use.POD, Use.PROCESS) for _, use, _ in judged)
    hidden = claims.requested - taken
    return tuple(
        Gpu(
            it.index,
            it.uuid,
            it.model,
            it.memory_total_mib,
            it.memory_used_mib,
            it.utilization,
            *((Use.UNSURE, "") if use is Use.FREE and hidden > 0 else (use, holder)),
        )
        for it, use, holder in judged
    )


def anonymous(gpus: Iterable[Gpu]) -> tuple[Gpu, ...]:
    """The same for those who may not know who has them."""
    return tuple(replace(gpu, holder="") for gpu in gpus)


def choose(spec: GpuSpec, gpus: Iterable[Gpu], node: str) -> tuple[GpuId, ...]:
    """The GPUs that a workspace gets: those it names, or the first free ones."""
    found = {gpu.index: gpu for gpu in gpus}
    free = [gpu for gpu in found.values() if gpu.use is Use.FREE]
    if spec.indices:
        return tuple(_wanted(found, index, node) for index in spec.indices)
    if spec.reserve > len(free):
        raise Conflict(
            f"workspace.gpu.reserve: {spec.reserve} are wanted, "
            f"and {len(free)} of {len(found)} GPUs of {node} are free",
            hint=f"kvestigate workspace gpus --node {node} shows who has the others",
        )
    return tuple(GpuId(gpu.index, gpu.uuid) for gpu in free[: spec.reserve])


def choose_for_run(
    wanted: tuple[int, ...], own: tuple[GpuId, ...], gpus: Iterable[Gpu], node: str
) -> tuple[GpuId, ...]:
    """The GPUs that a run sees: of its workspace, or free ones where that has none."""
    if not wanted:
        return own
    if not own:
        found = {gpu.index: gpu for gpu in gpus}
        return tuple(_wanted(found, index, node, "gpu") for index in wanted)
    mine = {gpu.index: gpu for gpu in own}
    for index in wanted:
        if index not in mine:
            raise InputError(
                f"GPU {index} does not belong to the workspace",
                where="gpu",
                hint=f"it has reserved {', '.join(map(str, mine))}",
            )
    return tuple(mine[index] for index in wanted)


def _wanted(
    found: Mapping[int, Gpu], index: int, node: str, where: str = "workspace.gpu.indices"
) -> GpuId:
    gpu = found.get(index)
    if gpu is None:
        known = ", ".join(map(str, found)) or "none"
        raise InputError(f"{node} has no GPU {index}", where=where, hint=f"there are: {known}")
    if gpu.use is not Use.FREE:
        raise Conflict(
            f"{where}: GPU {index} of {node} is not free: {reason(gpu)}",
            hint=f"kvestigate workspace gpus --node {node} shows which are",
        )
    return GpuId(gpu.index, gpu.uuid)


def reason(gpu: Gpu) -> str:
    """Who has it, in words."""
    match gpu.use:
        case Use.FREE:
            return "nobody has it"
        case Use.WORKSPACE:
            return f"workspace {gpu.holder or 'of somebody else'} has reserved it"
        case Use.POD if not gpu.holder or gpu.holder.startswith("pid "):
            return f"a container ({gpu.holder or 'of somebody else'}) was given it"
        case Use.POD:
            return f"pod ({gpu.holder}) was given it"
        case Use.PROCESS:
            return f"a process uses it ({gpu.holder})" if gpu.holder else "its memory is in use"
        case Use.UNSURE:
            return "a pod may have been given it, and nobody says which one"


def _use(gpu: Reading, claims: Claims) -> tuple[Use, str]:
    if name := claims.workspaces.get(gpu.uuid):
        return Use.WORKSPACE, name
    if pod := claims.pods.get(gpu.uuid):
        return Use.POD, pod
    if pid := claims.given.get(gpu.uuid):
        return Use.POD, f"pid {pid}"
    if pid := claims.pids.get(gpu.uuid):
        return Use.PROCESS, f"pid {pid}"
    if occupied(gpu.utilization, gpu.memory_used_mib):
        return Use.PROCESS, ""
    return Use.FREE, ""


class _Entry(msgspec.Struct, frozen=True):
    pod: str = msgspec.field(name="PodUID", default="")
    resource: str = msgspec.field(name="ResourceName", default="")
    devices: Any = msgspec.field(name="DeviceIDs", default=None)
    """By NUMA node, and in old versions a plain list."""


class _Data(msgspec.Struct, frozen=True):
    entries: tuple[_Entry, ...] | None = msgspec.field(name="PodDeviceEntries", default=None)


class _Checkpoint(msgspec.Struct, frozen=True):
    data: _Data = msgspec.field(name="Data", default_factory=_Data)


def _devices(written: Any) -> list[str]:
    lists = written.values() if isinstance(written, dict) else [written]
    return [it for each in lists if isinstance(each, list) for it in each if isinstance(it, str)]


def _rows(text: str, length: int) -> list[list[str]]:
    found = csv.reader(text.splitlines(), skipinitialspace=True)
    return [[cell.strip() for cell in row] for row in found if len(row) == length]


def _mib(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _percent(text: str) -> float | None:
    return float(text) if text.isdigit() else None
