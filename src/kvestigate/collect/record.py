"""What the stream is written from: `model` without the cost of checking what we made. Pure.

Fields, their order and their JSON are those of the models; a test holds the two together.
"""

from __future__ import annotations

from typing import Literal

import msgspec

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class ContainerRecord(msgspec.Struct, frozen=True, gc=False):
    name: str
    image: str = ""
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    req_cpu_mcpu: int | None = None
    req_mem_mib: int | None = None
    lim_cpu_mcpu: int | None = None
    lim_mem_mib: int | None = None


class DeviceRecord(msgspec.Struct, frozen=True, gc=False):
    kind: str
    name: str
    count: int | None = None


class Record(msgspec.Struct, frozen=True, gc=False):
    namespace: str
    workload_kind: str
    workload_name: str
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    containers: tuple[ContainerRecord, ...] = ()
    init_container_count: int = 0
    sidecar_count: int = 0
    volume_types: tuple[str, ...] = ()
    node_type: str | None = None
    runtime_class: str | None = None
    gpu_count: int = 0
    parallelism: int | None = None
    completions: int | None = None
    id: str | None = None
    event: EventType | None = None
    effective_cpu_mcpu: int = 0
    effective_mem_mib: int = 0
    gpu_resources: dict[str, int] = msgspec.field(default_factory=dict)
    gpu_fraction: float | None = None
    devices: tuple[DeviceRecord, ...] = ()


_ENCODER = msgspec.json.Encoder()


def line(record: Record) -> bytes:
    """The record as one line of NDJSON, without the line's end."""
    return _ENCODER.encode(record)
