"""What a filter of the scheduler is. Pure.

A filter decides in two steps. It is given the pod and the cluster once, and returns a function of
a node (a `Judge`), or None where it has nothing to say. So what depends on the pod alone (its
parsed selector, its counts of matching pods in each zone) is worked out once and not for each of
thousands of nodes, and a filter without an opinion costs nothing.

Rejections carry the words of kube-scheduler and whether evictions could help (`resolvable`), which
is all that preemption has to know about a filter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a pod cannot be on a node."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool = True
    """Whether it might fit if other pods left the node."""
    fatal: bool = False
    """Whether what the pod refers to is wrong, so that no other node is tried."""


Judge = Callable[[NodeState], Rejection | None]


class Filter(Protocol):
    """Says on which nodes a pod can be."""

    @property
    def name(self) -> str: ...

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | Rejection | None:
        """The function that filters nodes; None if all nodes pass, a rejection if none does."""
