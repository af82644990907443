"""What a scenario says, read strictly. Pure."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from kvestigate.cluster.node.gpu.model import MODELS, Load, Offer, RowRemap, Throttle
from kvestigate.errors import InputError
from kvestigate.kube.documents import File, read, shown
from kvestigate.kube.names import subdomain_problems

API_VERSION, KIND = "kvestigate.dev/v1", "Scenario"
MOST_NODES, MOST_GPUS = 5000, 64


def _between(least: int, most: int) -> Callable[[Any, str], int]:
    def check(value: Any, path: str) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        message = f"{shown(value)} is not a whole number from {least} to {most}"
        raise InputError(message, where=path)

    return check


def _name(value: Any, path: str) -> str:
    for problem in subdomain_problems(str(value)):
        raise InputError(problem, where=path)
    return str(value)


class HostKind(enum.Enum):
    """What a node is made of."""

    AUTO = "auto"
    NAMESPACE = "namespace"
    DIRECTORY = "directory"
    SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class GpuCondition:
    """What is wrong with a GPU, whether a pod has it or not."""

    lost: bool = False
    """Fallen off the bus."""
    xid: Annotated[int, _between(0, 999)] = 0
    """The last Xid error."""
    ecc: Annotated[int, _between(0, 10**9)] = 0
    """Uncorrectable memory errors since the driver was loaded."""
    eccLifetime: Annotated[int, _between(0, 10**9)] = 0
    rowRemap: RowRemap = RowRemap.NONE
    throttle: tuple[Throttle, ...] = ()
    pcieWidth: Annotated[int, _between(1, 16)] = 16
    nvlinkErrors: Annotated[int, _between(0, 10**9)] = 0


@dataclass(frozen=True, slots=True)
class GpuState:
    """What a GPU does while a pod has it; what is left out follows from the load."""

    load: Load = Load.BUSY
    utilization: Annotated[int, _between(0, 100)] | None = None
    memory: str | None = None
    """`87Gi`"""
    watts: float | None = None
    temperature: int | None = None
    outsidePods: bool = False
    """Whether it does so even if no pod has it: a process beside Kubernetes."""
    condition: GpuCondition = GpuCondition()


@dataclass(frozen=True, slots=True)
class NodeGpus:
    model: str
    count: Annotated[int, _between(1, MOST_GPUS)] = 8
    state: GpuState = GpuState()
    """Of those that `each` does not name."""
    each: tuple[GpuState, ...] = ()
    """By index."""
    mig: tuple[str, ...] = ()
    """Profiles of the instances that every GPU is divided into."""
    offer: Offer = Offer.DEVICE_PLUGIN
    """Whether pods ask for the GPUs as a resource, or claim them as devices."""

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            known = ", ".join(sorted(MODELS))
            message = f'"{self.model}" is not a known GPU model; use one of {known}'
            raise InputError(message, where="model")
        if len(self.each) > self.count:
            message = f"describes {len(self.each)} GPUs, but count is {self.count}"
            raise InputError(message, where="each")


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike."""

    name: str = "node-{{n}}"
    count: Annotated[int, _between(1, MOST_NODES)] = 1
    first: int = 1
    """The number of the first."""
    host: HostKind = HostKind.AUTO
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    """What it claims to have, beside or instead of what the machine has."""
    pods: Annotated[int, _between(1, 10_000)] = 110
    gpus: NodeGpus | None = None
    cordoned: bool = False
    lost: bool = False
    """Its kubelet does not answer any more."""

    def __post_init__(self) -> None:
        if self.count > 1 and "{{n" not in self.name:
            message = f'"{self.name}" would name {self.count} nodes: add {{{{n}}}}'
            raise InputError(message, where="name")


@dataclass(frozen=True, slots=True)
class Workload:
    """Manifests, once or many times: `{{n}}` and the keys of `each` are put in."""

    manifests: tuple[Mapping[str, Any], ...]
    times: Annotated[int, _between(1, 100_000)] | None = None
    first: int = 1
    each: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.times is not None and self.each:
            raise InputError("set times or each, not both")


@dataclass(frozen=True, slots=True)
class Spec:
    summary: str
    nodes: tuple[NodeGroup, ...] = (NodeGroup(count=3),)
    workloads: tuple[Workload, ...] = ()
    missingImages: tuple[str, ...] = ()
    """Patterns of images that no registry has."""
    seed: int = 0
    """Another one lets GPUs sway differently."""

    @property
    def claims_gpus(self) -> bool:
        """Whether nodes offer GPUs for dynamic allocation."""
        return any(group.gpus and group.gpus.offer is Offer.DRA for group in self.nodes)

    def __post_init__(self) -> None:
        total = sum(group.count for group in self.nodes)
        if total > MOST_NODES:
            message = f"{total} nodes are more than the maximum of {MOST_NODES}"
            raise InputError(message, where="nodes")


@dataclass(frozen=True, slots=True)
class _Metadata:
    name: Annotated[str, _name]


@dataclass(frozen=True, slots=True)
class Scenario:
    apiVersion: str
    kind: str
    metadata: _Metadata
    spec: Spec

    @property
    def name(self) -> str:
        return self.metadata.name


def parse(file: File) -> Scenario:
    value = file.value
    if isinstance(value, dict):
        api_version, kind = value.get("apiVersion"), value.get("kind")
        if (api_version, kind) != (API_VERSION, KIND):
            raise InputError(
                f"apiVersion and kind are {api_version} and {kind}, not {API_VERSION} and {KIND}",
                hint="see an example: kvestigate scenario show gpu-fleet",
            )
    return read(Scenario, value)
