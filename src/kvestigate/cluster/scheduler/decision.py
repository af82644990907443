"""Chooses the node of a pod: filter, score, choose. Changes nothing. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from kvestigate.cluster.scheduler.registry import DEFAULT, Profile
from kvestigate.kube.feasibility.filters import first_rejection, judges_of, unavailable
from kvestigate.kube.feasibility.framework import Judge, Rejection
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.node_selection import named_nodes

_ENOUGH_NODES = 100
"""Fewer feasible nodes than this are never enough to choose from."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The node that the pod gets."""

    node: str


@dataclass(frozen=True, slots=True)
class NoFit:
    """Why the pod fits on no node."""

    total: int
    """How many nodes there are."""
    everywhere: Rejection | None = None
    """What keeps it from all nodes at once."""
    nodes: dict[str, Rejection] = field(default_factory=dict)
    """What keeps it from each node; `elsewhere` speaks for those left out."""
    elsewhere: Rejection | None = None
    fatal: Rejection | None = None
    """The error that ended the decision. The scheduler tries the pod again soon."""

    @property
    def plugins(self) -> frozenset[str]:
        """Names of the plugins that rejected it: only a change that concerns one may help."""
        rejections = [*self.nodes.values(), self.everywhere, self.elsewhere]
        return frozenset(item.plugin for item in rejections if item is not None)

    def resolvable(self) -> list[str]:
        """Nodes on which it might fit if other pods left."""
        return [name for name, rejection in self.nodes.items() if rejection.resolvable]

    def __str__(self) -> str:
        if not self.total:
            return "no nodes available to schedule pods"
        if self.fatal is not None:
            return f'running "{self.fatal.plugin}" filter plugin: {", ".join(self.fatal.reasons)}'
        return unavailable(self.total, self.everywhere, self.nodes.values(), self.elsewhere)


class Decider:
    """Decides for one pod after another."""

    def __init__(self, profile: Profile = DEFAULT, random: Random | None = None) -> None:
        self._profile = profile
        self._random = random or Random()
        self._start = 0
        """Where the search for feasible nodes begins, so that all nodes have their turn."""

    def decide(self, pod: PodFacts, state: ClusterState) -> Placement | NoFit:
        total = len(state.nodes)
        if not total:
            return NoFit(0)
        judges = self._judges(pod, state)
        if isinstance(judges, Rejection):
            return NoFit(total, everywhere=judges)
        nominated = pod.pod.status.nominated_node_name
        if nominated in state.nodes and self.fits(pod, state.nodes[nominated], state) is None:
            return Placement(nominated)
        named = named_nodes(pod.pod.spec.affinity)
        if named is None:
            feasible, rejections = self._feasible(pod, judges, self._in_turn(state), state)
            self._start += len(feasible) + len(rejections)
            elsewhere = None
        elif named:
            nodes = [state.nodes[name] for name in sorted(named & state.nodes.keys())]
            feasible, rejections = self._feasible(pod, judges, nodes, state)
            reasons = ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
            elsewhere = Rejection("NodeAffinity", reasons, resolvable=False)
        else:
            reasons = ("pod affinity terms conflict",)
            return NoFit(total, everywhere=Rejection("NodeAffinity", reasons, resolvable=False))
        fatal = next((each for each in rejections.values() if each.fatal), None)
        if fatal is not None:
            return NoFit(total, fatal=fatal)
        if feasible:
            return self._best(pod, state, feasible)
        return NoFit(total, nodes=rejections, elsewhere=elsewhere)

    def fits(self, pod: PodFacts, node: NodeState, state: ClusterState) -> Rejection | None:
        """None if the pod fits on the node, both with and without the pods nominated for it."""
        expected = _expected(pod, node.name, state)
        if expected:
            with state.supposing(node.name, along=expected):
                rejection = self._rejection(pod, node, state)
            if rejection is not None:
                return rejection
        return self._rejection(pod, node, state)

    # -- parts -----------------------------------------------------------------------------------

    def _judges(self, pod: PodFacts, state: ClusterState) -> list[Judge] | Rejection:
        return judges_of(pod, state, self._profile.filters)

    def _rejection(self, pod: PodFacts, node: NodeState, state: ClusterState) -> Rejection | None:
        judges = self._judges(pod, state)
        return judges if isinstance(judges, Rejection) else first_rejection(judges, node)

    def _in_turn(self, state: ClusterState) -> list[NodeState]:
        """All nodes, from where the last search ended."""
        nodes = list(state.nodes.values())
        start = self._start % len(nodes)
        return nodes[start:] + nodes[:start]

    def _feasible(
        self, pod: PodFacts, judges: list[Judge], nodes: list[NodeState], state: ClusterState
    ) -> tuple[list[NodeState], dict[str, Rejection]]:
        """Nodes that the pod fits on, as many as are compared, and why it does not on others."""
        enough = enough_nodes(len(state.nodes))
        feasible: list[NodeState] = []
        rejections: dict[str, Rejection] = {}
        for node in nodes:
            rejection = first_rejection(judges, node)
            if rejection is None and node.name in state.nominated:
                rejection = self.fits(pod, node, state)
            if rejection is not None:
                rejections[node.name] = rejection
                if rejection.fatal:
                    break
                continue
            feasible.append(node)
            if len(feasible) == enough:
                break
        return feasible, rejections

    def _best(self, pod: PodFacts, state: ClusterState, feasible: list[NodeState]) -> Placement:
        """The node with the highest score; any of them when several have it."""
        if len(feasible) == 1:
            return Placement(feasible[0].name)
        totals = [0] * len(feasible)
        for plugin, weight in self._profile.scorers:
            grade = plugin.grade(pod, state, feasible)
            if grade is not None:
                scores = plugin.scores([grade(node) for node in feasible])
                totals = [
                    total + weight * score for total, score in zip(totals, scores, strict=True)
                ]
        most = max(totals)
        best = [node for node, total in zip(feasible, totals, strict=True) if total == most]
        return Placement(self._random.choice(best).name)


def enough_nodes(total: int) -> int:
    """How many feasible nodes to look for: the more nodes, the smaller a share of them."""
    if total < _ENOUGH_NODES:
        return total
    share = max(5, 50 - total // 125)
    return max(_ENOUGH_NODES, total * share // 100)


def _expected(pod: PodFacts, node: str, state: ClusterState) -> list[PodFacts]:
    """Pods nominated for the node whose priority is at least that of this pod."""
    waiting = state.nominated.get(node, {}).values()
    return [
        other
        for other in waiting
        if other.priority >= pod.priority
        and other.uid != pod.uid
        and other.uid not in state.nodes[node].pods
    ]
