"""Of the nodes where requests fit, empty and balanced ones are better."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.cluster.scheduler.framework import MAX_SCORE, Grade
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.requests import CPU, MEMORY

_HALF = MAX_SCORE // 2


class Allocation:
    """How full a node would be: emptier is better."""

    name = "NodeResourcesFit"

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade:
        wanted = [(resource, pod.assumed.get(resource, 0)) for resource in (CPU, MEMORY)]

        def grade(node: NodeState) -> int:
            total = counted = 0
            for resource, amount in wanted:
                capacity = node.allocatable.get(resource, 0)
                if capacity:
                    total += _free(node.assumed.get(resource, 0) + amount, capacity)
                    counted += 1
            return total // counted if counted else 0

        return grade

    def scores(self, grades: list[int]) -> list[int]:
        return grades


def _free(requested: int, capacity: int) -> int:
    return (capacity - requested) * MAX_SCORE // capacity if requested <= capacity else 0


class BalancedAllocation:
    """Whether a pod makes a node's use of cpu and of memory more alike."""

    name = "NodeResourcesBalancedAllocation"

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        cpu, memory = pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0)
        if not (cpu or memory):
            return None

        def grade(node: NodeState) -> int:
            before = _balance(node, 0, 0)
            return _HALF + (_HALF + _balance(node, cpu, memory) - before) // 2

        return grade

    def scores(self, grades: list[int]) -> list[int]:
        return grades


def _balance(node: NodeState, cpu: int, memory: int) -> int:
    cpus, memories = node.allocatable.get(CPU, 0), node.allocatable.get(MEMORY, 0)
    if not (cpus and memories):
        return MAX_SCORE
    cpu_share = min(1.0, (node.requested.get(CPU, 0) + cpu) / cpus)
    memory_share = min(1.0, (node.requested.get(MEMORY, 0) + memory) / memories)
    return int((1 - abs(cpu_share - memory_share) / 2) * MAX_SCORE)
