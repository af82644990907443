"""What keeps a node out of a plan. A new constraint is one line in `CONSTRAINTS`. Pure."""

from __future__ import annotations

from kvestigate.kube.eligibility import matches_node, untolerated
from kvestigate.kube.views.core import Node, Taint
from kvestigate.kube.views.placement import Toleration
from kvestigate.planning.model import GPU, Constraint, Demand, Question

_EFFECTS = ("NoSchedule", "NoExecute")
_GPU_TAINTS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")


def selected(demand: Demand, node: Node) -> bool:
    """Whether the demand wants such a node, whatever state it is in."""
    return (
        node.metadata.name not in demand.exclude
        and demand.labels.matches(node.metadata.labels)
        and matches_node(demand.spec, node)
    )


def taints_against(demand: Demand, node: Node) -> list[Taint]:
    return untolerated(_tolerations(demand), node.spec.taints, _EFFECTS)


def _tolerations(demand: Demand) -> tuple[Toleration, ...]:
    """What is written, and what clusters add themselves for those who ask for a device."""
    asked = (name for name, amount in demand.need.items() if amount and "/" in name)
    keys = [*asked, *(_GPU_TAINTS if demand.need.get(GPU) else ())]
    return (*demand.spec.tolerations, *(Toleration(key=key, operator="Exists") for key in keys))


def _first_taint(question: Question) -> str:
    taint = taints_against(question.demand, question.node)[0]
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


CONSTRAINTS: tuple[Constraint, ...] = (
    Constraint(
        "excluded",
        lambda it: it.node.metadata.name in it.demand.exclude,
        "the excluded nodes were used",
    ),
    Constraint(
        "labels do not match",
        lambda it: not selected(it.demand, it.node),
        "nodes with other labels were used",
    ),
    Constraint(
        "not ready", lambda it: not it.capacity.ready, "the nodes that are not ready became so"
    ),
    Constraint(
        "cordoned", lambda it: not it.capacity.schedulable, "the cordoned nodes were uncordoned"
    ),
    Constraint(
        "tainted",
        lambda it: bool(taints_against(it.demand, it.node)),
        "the taints of the others were tolerated",
        _first_taint,
    ),
    Constraint("pods there repel it", lambda it: it.repelled),
    Constraint("no pod there that it must be near", lambda it: it.lonely),
)
"""The first that applies to a node counts."""
