"""What a plugin of the scheduler is. Pure.

A plugin decides in two steps. It is given the pod and the cluster once, and returns a function of
a node (a `Judge` for filters, a `Grade` for scorers), or None where it has nothing to say. So what
depends on the pod alone (its parsed selector, its counts of matching pods in each zone) is worked
out once and not for each of thousands of nodes, and a plugin without an opinion costs nothing.

Rejections carry the words of kube-scheduler and whether evictions could help (`resolvable`), which
is all that preemption has to know about a plugin.
"""

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

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | Rejection | None:
        """The function that filters nodes; None if all nodes pass, a rejection if none does."""


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
