"""Why a node cannot be used for a demand. A new reason is one entry in `CONSTRAINTS`. Pure."""

from __future__ import annotations

from kvestigate.kube.eligibility import matches_node, untolerated
from kvestigate.kube.views.core import Node, Taint
from kvestigate.kube.views.placement import Toleration
from kvestigate.planning.model import GPU, Constraint, Demand, Question
from kvestigate.render.human import size
from kvestigate.snapshot.gpus import vendor_of

MEMORY_LABEL = "nvidia.com/gpu.memory"
_EFFECTS = ("NoSchedule", "NoExecute")
_GPU_TAINTS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")


def selected(demand: Demand, node: Node) -> bool:
    """Whether the node's name and labels match the demand, whatever the node's state."""
    return (
        node.metadata.name not in demand.exclude
        and demand.labels.matches(node.metadata.labels)
        and matches_node(demand.spec, node)
    )


def taints_against(demand: Demand, node: Node) -> list[Taint]:
    return untolerated(_tolerations(demand), node.spec.taints, _EFFECTS)


def _tolerations(demand: Demand) -> tuple[Toleration, ...]:
    """The manifest's tolerations, and those that clusters add to pods that request a device."""
    devices = (name for name, amount in demand.need.items() if amount and "/" in name)
    keys = [*devices, *(_GPU_TAINTS if demand.need.get(GPU) else ())]
    return (*demand.spec.tolerations, *(Toleration(key=key, operator="Exists") for key in keys))


def wants_gpus(demand: Demand) -> bool:
    return any(amount and (name == GPU or vendor_of(name)) for name, amount in demand.need.items())


def gpu_memory(node: Node) -> int | None:
    """MiB of one GPU, by the label of NVIDIA's GPU feature discovery; None if it is unknown."""
    written = node.metadata.labels.get(MEMORY_LABEL, "")
    return int(written) if written.isascii() and written.isdigit() else None


def _memory(node: Node) -> str:
    mib = gpu_memory(node)
    return "unknown" if mib is None else size(mib * 1024 * 1024)


def _first_taint(question: Question) -> str:
    taint = taints_against(question.demand, question.node)[0]
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


CONSTRAINTS: tuple[Constraint, ...] = (
    Constraint(
        "excluded",
        lambda question: question.node.metadata.name in question.demand.exclude,
        "the excluded nodes may be used",
    ),
    Constraint(
        "labels do not match",
        lambda question: not selected(question.demand, question.node),
        "nodes with other labels may be used",
    ),
    Constraint(
        "not ready",
        lambda question: not question.capacity.ready,
        "the nodes that are not ready become ready",
    ),
    Constraint(
        "cordoned",
        lambda question: not question.capacity.schedulable,
        "the cordoned nodes are uncordoned",
    ),
    Constraint(
        "tainted",
        lambda question: bool(taints_against(question.demand, question.node)),
        "the pods tolerate the taints of the other nodes",
        _first_taint,
    ),
    Constraint(
        "GPU memory too small:",
        lambda question: (gpu_memory(question.node) or 0) < question.demand.gpu_memory_mib,
        "GPUs with less memory would do",
        lambda question: _memory(question.node),
    ),
    Constraint(
        "has a broken GPU:",
        lambda question: bool(question.broken) and wants_gpus(question.demand),
        "the broken GPUs are repaired",
        lambda question: question.broken,
    ),
    Constraint("pod anti-affinity forbids it", lambda question: question.repelled),
    Constraint("pod affinity finds no matching pod", lambda question: question.lonely),
    Constraint(
        "excluded by ports, volumes or pods that are there:",
        lambda question: bool(question.refusal),
        details=lambda question: question.refusal,
    ),
)
"""In this order: the first that applies to a node is the reason shown."""
