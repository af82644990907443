"""The public models, for programs that receive or build requests.

The stream itself is written from `record`, whose JSON is the same to the byte.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class ContainerSpec(BaseModel):
    """One container that runs beside the others."""

    name: str
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    req_cpu_mcpu: int | None = Field(
        default=None, description="Requested CPU in thousandths of a core."
    )
    req_mem_mib: int | None = Field(
        default=None, description="Requested memory in MiB, rounded up."
    )
    lim_cpu_mcpu: int | None = Field(
        default=None, description="CPU limit in thousandths of a core."
    )
    lim_mem_mib: int | None = Field(default=None, description="Memory limit in MiB, rounded up.")


class DeviceRequest(BaseModel):
    """GPUs of one kind that one pod asks for."""

    kind: Literal["gpu", "partition", "share", "claim"]
    name: str = Field(
        description="The resource; of a claim, the ResourceClaimTemplate or the ResourceClaim."
    )
    count: int | None = Field(
        default=None, description="How many; null for a claim, whose own object says it."
    )


class InferenceRequest(BaseModel):
    """One state of one workload."""

    namespace: str
    workload_kind: str
    workload_name: str
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(
        default_factory=dict, description="Without kubectl's copy of the whole manifest."
    )
    containers: list[ContainerSpec] = Field(default_factory=list)
    init_container_count: int = Field(
        default=0, description="Init containers that end before the other containers start."
    )
    sidecar_count: int = Field(
        default=0,
        description="Init containers that keep running, and known mesh, log and proxy containers.",
    )
    volume_types: list[str] = Field(
        default_factory=list, description="Types of the volumes, sorted, without repeats."
    )
    node_type: str | None = Field(
        default=None, description="The type of node that node selectors or node affinity require."
    )
    runtime_class: str | None = None
    gpu_count: int = Field(default=0, description="GPU devices, or shares of a device, of one pod.")
    parallelism: int | None = None
    completions: int | None = None
    id: str | None = Field(
        default=None,
        description="uid@resourceVersion: equal for repeats of the same state; null for files.",
    )
    event: Literal["ADDED", "MODIFIED", "DELETED"] | None = Field(
        default=None, description="The change of the workload; null for files."
    )
    effective_cpu_mcpu: int = Field(
        default=0,
        description="CPU that the scheduler reserves for one pod, in thousandths of a core.",
    )
    effective_mem_mib: int = Field(
        default=0, description="Memory that the scheduler reserves for one pod, in MiB, rounded up."
    )
    gpu_resources: dict[str, int] = Field(
        default_factory=dict, description="GPU amounts of one pod by resource name."
    )
    gpu_fraction: float | None = Field(
        default=None,
        description="The share of one device that the annotation gpu-fraction requests.",
    )
    devices: list[DeviceRequest] = Field(
        default_factory=list,
        description="What gpu_resources has, by kind, and the claims on devices of one pod.",
    )


def schema() -> dict[str, object]:
    """The JSON Schema of one line of the stream."""
    return InferenceRequest.model_json_schema()
