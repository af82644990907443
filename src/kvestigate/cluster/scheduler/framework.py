"""What a plugin is: it looks at a pod and the cluster, and returns how to look at nodes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.state import ClusterState

MAX_SCORE = 100


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a pod cannot be on a node."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool = True
    """Whether it might fit if other pods left the node."""


Judge = Callable[[NodeState], Rejection | None]
Grade = Callable[[NodeState], int]


class Filter(Protocol):
    """Says on which nodes a pod can be."""

    @property
    def name(self) -> str: ...

    @property
    def local(self) -> bool:
        """The verdict depends on the pod's likeness and the node with its pods, on nothing else."""

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | Rejection | None:
        """How to judge nodes; None when all will do, a rejection when none will."""


class Scorer(Protocol):
    """Says which nodes suit a pod better."""

    @property
    def name(self) -> str: ...

    @property
    def local(self) -> bool:
        """As with filters; and the grade is the score, without regard to other nodes' grades."""

    def cares(self, pod: PodFacts, state: ClusterState) -> bool:
        """Whether it may prefer some nodes to others, as far as that is cheap to tell."""

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        """How to grade `nodes`; None when the plugin has no preference among them."""

    def scores(self, grades: list[int]) -> list[int]:
        """Grades of all nodes as scores from 0 to 100."""


def in_proportion(grades: list[int], *, reverse: bool = False) -> list[int]:
    """Scores as a share of the best grade; with `reverse` the lowest grade is the best."""
    most = max(grades, default=0)
    if most == 0:
        return [MAX_SCORE] * len(grades) if reverse else grades
    shares = [MAX_SCORE * grade // most for grade in grades]
    return [MAX_SCORE - share for share in shares] if reverse else shares
