"""What a scenario says, read strictly. Pure."""

from __future__ import annotations

import enum
import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from kvestigate.cluster.node.gpu.model import MODELS, Load
from kvestigate.errors import InputError
from kvestigate.kube.names import subdomain_problems
from kvestigate.kube.yaml_documents import load

API_VERSION, KIND = "kvestigate.dev/v1", "Scenario"
MOST_NODES, MOST_GPUS = 5000, 64

_AT = re.compile(r" - at `\$\.?(?P<path>.*)`$")


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The base of everything in a scenario: what is unknown is a mistake."""


class HostKind(enum.Enum):
    """What a node is made of."""

    AUTO = "auto"
    NAMESPACE = "namespace"
    DIRECTORY = "directory"
    SIMULATED = "simulated"


class GpuState(Part, frozen=True):
    """What a GPU does while somebody has it; what is left out follows from the load."""

    load: Load = Load.BUSY
    utilization: Annotated[int, Meta(ge=0, le=100)] | None = None
    memory: str | None = None
    """`87Gi`"""
    watts: Annotated[float, Meta(ge=0)] | None = None
    temperature: int | None = None
    outside_pods: bool = False
    """Does so even if no pod has it: somebody's process beside Kubernetes."""


class NodeGpus(Part, frozen=True):
    model: str
    count: Annotated[int, Meta(ge=1, le=MOST_GPUS)] = 8
    state: GpuState = GpuState()
    """Of those that `each` does not name."""
    each: tuple[GpuState, ...] = ()
    """By index."""
    mig: tuple[str, ...] = ()
    """Profiles of the instances that every GPU is divided into."""


class NodeGroup(Part, frozen=True):
    """Nodes that are alike."""

    name: str = "node-{{n}}"
    count: Annotated[int, Meta(ge=1, le=MOST_NODES)] = 1
    first: int = 1
    """The number of the first."""
    host: HostKind = HostKind.AUTO
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: tuple[dict[str, str], ...] = ()
    capacity: dict[str, str | int] = field(default_factory=dict)
    """What it claims to have, beside or instead of what the machine has."""
    pods: Annotated[int, Meta(ge=1)] = 110
    gpus: NodeGpus | None = None
    cordoned: bool = False
    lost: bool = False
    """Its kubelet does not answer any more."""


class Workload(Part, frozen=True):
    """Manifests, once or many times: `{{n}}` and the keys of `each` are put in."""

    manifests: tuple[dict[str, Any], ...]
    times: Annotated[int, Meta(ge=1)] | None = None
    first: int = 1
    each: tuple[dict[str, Any], ...] = ()


class Spec(Part, frozen=True):
    summary: str
    nodes: tuple[NodeGroup, ...] = (NodeGroup(count=3),)
    workloads: tuple[Workload, ...] = ()
    missing_images: tuple[str, ...] = ()
    """Patterns of images that no registry has."""
    seed: int = 0
    """Another one lets GPUs sway differently."""


class Scenario(Part, frozen=True):
    name: str
    spec: Spec


class _Name(Part, frozen=True):
    name: str


class _Document(Part, frozen=True):
    api_version: str
    kind: str
    metadata: _Name
    spec: Spec


def parse(text: str | bytes, source: str) -> Scenario:
    """InputError names the file and the field."""
    documents = load(text, source)
    if len(documents) != 1:
        raise InputError(
            f"has {len(documents)} YAML documents; a scenario is exactly one", where=source
        )
    value = documents[0].value
    if isinstance(value, dict):
        api_version, kind = value.get("apiVersion"), value.get("kind")
        if (api_version, kind) != (API_VERSION, KIND):
            raise InputError(
                f"apiVersion and kind are {api_version} and {kind}, not {API_VERSION} and {KIND}",
                where=source,
                hint="see an example: kvestigate scenario show gpu-fleet",
            )
    try:
        document = msgspec.convert(value, _Document)
    except msgspec.ValidationError as error:
        raise _misfit(str(error), source) from error
    scenario = Scenario(document.metadata.name, document.spec)
    for path, problem in _problems(scenario):
        raise InputError(problem, where=f"{source}: {path}")
    return scenario


def _misfit(message: str, source: str) -> InputError:
    position = _AT.search(message)
    if position is None:
        return InputError(message, where=source)
    path = position["path"] or "(root)"
    return InputError(message[: position.start()], where=f"{source}: {path}")


def _problems(scenario: Scenario) -> list[tuple[str, str]]:
    """What the types cannot express: (path, problem)."""
    problems = [("metadata.name", problem) for problem in subdomain_problems(scenario.name)]
    for index, group in enumerate(scenario.spec.nodes):
        problems += _group_problems(f"spec.nodes[{index}]", group)
    total = sum(group.count for group in scenario.spec.nodes)
    if total > MOST_NODES:
        problems.append(("spec.nodes", f"{total} nodes are more than the maximum of {MOST_NODES}"))
    for index, workload in enumerate(scenario.spec.workloads):
        if workload.times is not None and workload.each:
            problems.append((f"spec.workloads[{index}]", "set times or each, not both"))
    return problems


def _group_problems(path: str, group: NodeGroup) -> list[tuple[str, str]]:
    problems = []
    if group.count > 1 and "{{n" not in group.name:
        problems.append(
            (f"{path}.name", f'"{group.name}" would name {group.count} nodes: add {{{{n}}}}')
        )
    gpus = group.gpus
    if gpus is None:
        return problems
    if gpus.model not in MODELS:
        known = ", ".join(sorted(MODELS))
        problems.append(
            (f"{path}.gpus.model", f'"{gpus.model}" is not a known GPU model; use one of {known}')
        )
    if len(gpus.each) > gpus.count:
        problem = f"describes {len(gpus.each)} GPUs, but count is {gpus.count}"
        problems.append((f"{path}.gpus.each", problem))
    return problems
