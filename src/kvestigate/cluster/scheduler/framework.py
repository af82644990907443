"""What a scorer of the scheduler is; filters are those of `kube.feasibility`. Pure.

Like a filter, a scorer is given the pod and the cluster once, and returns a function of a node (a
`Grade`), or None where it prefers no node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState

MAX_SCORE = 100

Grade = Callable[[NodeState], int]


class Scorer(Protocol):
    """Says which nodes suit a pod better."""

    @property
    def name(self) -> str: ...

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        """The function that grades `nodes`; None if the plugin prefers none of them."""

    def scores(self, grades: list[int]) -> list[int]:
        """Grades of all nodes as scores from 0 to 100."""


def in_proportion(grades: list[int], *, reverse: bool = False) -> list[int]:
    """Scores as a share of the best grade; with `reverse` the lowest grade is the best."""
    most = max(grades, default=0)
    if most == 0:
        return [MAX_SCORE] * len(grades) if reverse else grades
    shares = [MAX_SCORE * grade // most for grade in grades]
    return [MAX_SCORE - share for share in shares] if reverse else shares
