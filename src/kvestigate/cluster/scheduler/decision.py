"""Chooses the node of a pod: filter, score, choose. Changes nothing. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from kvestigate.cluster.scheduler import selection
from kvestigate.cluster.scheduler.framework import Judge, Rejection
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.registry import DEFAULT, Profile
from kvestigate.cluster.scheduler.score_cache import ClassScores, ScoreCache
from kvestigate.cluster.scheduler.state import ClusterState

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
        return unavailable(self.total, self.everywhere, self.nodes.values(), self.elsewhere)


def unavailable(
    total: int,
    everywhere: Rejection | None,
    rejections: Iterable[Rejection],
    elsewhere: Rejection | None,
) -> str:
    """`0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`"""
    start = f"0/{total} nodes are available:"
    if everywhere is not None:
        return f"{start} {', '.join(everywhere.reasons)}."
    counts: Counter[str] = Counter()
    known = 0
    for rejection in rejections:
        counts.update(rejection.reasons)
        known += 1
    if elsewhere is not None and known < total:
        for reason in elsewhere.reasons:
            counts[reason] += total - known
    if not counts:
        return start
    return f"{start} {', '.join(sorted(f'{count} {text}' for text, count in counts.items()))}."


class Decider:
    """Decides for one pod after another; scores of nodes are kept between decisions."""

    def __init__(self, profile: Profile = DEFAULT, random: Random | None = None) -> None:
        self._profile = profile
        self._random = random or Random()
        self._score_cache = ScoreCache(profile, self._random)
        self._start = 0

    def decide(self, pod: PodFacts, state: ClusterState) -> Placement | NoFit:
        if not state.nodes:
            return NoFit(0)
        judges = self._judges(pod, state, local=False)
        if isinstance(judges, Rejection):
            return NoFit(len(state.nodes), everywhere=judges)
        wanted = pod.pod.status.nominated_node_name
        if wanted in state.nodes and self.fits(pod, state.nodes[wanted], state) is None:
            return Placement(wanted)
        named = selection.named_nodes(pod.pod.spec.affinity)
        if named is not None:
            return self._among_named(pod, named, state)
        class_scores = self._score_cache.of(pod, state)
        contested = _contested(pod, state)
        trial = _Trial(self, pod, state, judges, contested)
        if self._compares(pod, state):
            return self._side_by_side(trial, class_scores)
        node = class_scores.best(trial.accepts)
        if node is not None:
            return Placement(node)
        return _no_fit(state, {**class_scores.rejections, **trial.rejections})

    def fits(self, pod: PodFacts, node: NodeState, state: ClusterState) -> Rejection | None:
        """None if the pod fits on the node, both with and without the pods nominated for it."""
        expected = _expected(pod, node.name, state)
        if expected:
            with state.supposing(node.name, along=expected):
                rejection = self._judge(pod, node, state)
            if rejection is not None:
                return rejection
        return self._judge(pod, node, state)

    def may_fit(self, pod: PodFacts, node: str, state: ClusterState) -> bool:
        """Whether the local plugins accept the node."""
        named = selection.named_nodes(pod.pod.spec.affinity)
        if named is not None:
            return node in named
        return node in self._score_cache.of(pod, state).scores

    # -- parts -----------------------------------------------------------------------------------

    def _judges(
        self, pod: PodFacts, state: ClusterState, *, local: bool
    ) -> list[Judge] | Rejection:
        judges: list[Judge] = []
        for plugin in self._profile.filters:
            if plugin.local is local:
                verdict = plugin.judge(pod, state)
                if isinstance(verdict, Rejection):
                    return verdict
                if verdict is not None:
                    judges.append(verdict)
        return judges

    def _judge(self, pod: PodFacts, node: NodeState, state: ClusterState) -> Rejection | None:
        for plugin in self._profile.filters:
            verdict = plugin.judge(pod, state)
            if verdict is not None:
                rejection = verdict if isinstance(verdict, Rejection) else verdict(node)
                if rejection is not None:
                    return rejection
        return None

    def _compares(self, pod: PodFacts, state: ClusterState) -> bool:
        """Whether some plugin scores nodes by comparing them."""
        return any(
            plugin.cares(pod, state) for plugin, _ in self._profile.scorers if not plugin.local
        )

    def _among_named(
        self, pod: PodFacts, named: frozenset[str], state: ClusterState
    ) -> Placement | NoFit:
        if not named:
            reasons = ("pod affinity terms conflict",)
            return NoFit(len(state.nodes), everywhere=Rejection("NodeAffinity", reasons, False))
        rejections: dict[str, Rejection] = {}
        feasible = []
        for name in sorted(named & state.nodes.keys()):
            rejection = self.fits(pod, state.nodes[name], state)
            if rejection is None:
                feasible.append(state.nodes[name])
            else:
                rejections[name] = rejection
        if feasible:
            return self._choose(pod, state, feasible, None)
        reasons = ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
        elsewhere = Rejection("NodeAffinity", reasons, resolvable=False)
        return NoFit(len(state.nodes), nodes=rejections, elsewhere=elsewhere)

    def _side_by_side(self, trial: _Trial, class_scores: ClassScores) -> Placement | NoFit:
        names = list(class_scores.scores)
        enough = enough_nodes(len(trial.state.nodes))
        start = self._start % len(names) if names else 0
        names = names[start:] + names[:start]
        nodes = trial.state.nodes
        if trial.judges or trial.contested:
            accepted = list(islice(filter(trial.accepts, names), enough))
        else:
            accepted = names[:enough]
        enough_found = len(accepted) == enough
        self._start += names.index(accepted[-1]) + 1 if enough_found else len(names)
        feasible = [nodes[name] for name in accepted]
        if not feasible:
            return _no_fit(trial.state, {**class_scores.rejections, **trial.rejections})
        return self._choose(trial.pod, trial.state, feasible, class_scores)

    def _choose(
        self,
        pod: PodFacts,
        state: ClusterState,
        feasible: list[NodeState],
        class_scores: ClassScores | None,
    ) -> Placement:
        if len(feasible) == 1:
            return Placement(feasible[0].name)
        totals = [class_scores.scores[node.name] if class_scores else 0 for node in feasible]
        for plugin, weight in self._profile.scorers:
            if plugin.local and class_scores:
                continue
            grade = plugin.grade(pod, state, feasible)
            if grade is not None:
                scores = plugin.scores([grade(node) for node in feasible])
                totals = [
                    total + weight * score for total, score in zip(totals, scores, strict=True)
                ]
        most = max(totals)
        best = [node for node, total in zip(feasible, totals, strict=True) if total == most]
        return Placement(self._random.choice(best).name)


@dataclass(slots=True)
class _Trial:
    """Filters nodes that the local plugins accept by the other plugins."""

    decider: Decider
    pod: PodFacts
    state: ClusterState
    judges: list[Judge]
    contested: frozenset[str]
    """Nodes on which room is being made for others."""
    rejections: dict[str, Rejection] = field(default_factory=dict)

    def accepts(self, name: str) -> bool:
        node = self.state.nodes[name]
        for judge in self.judges:
            rejection = judge(node)
            if rejection is not None:
                self.rejections[name] = rejection
                return False
        if name in self.contested:
            rejection = self.decider.fits(self.pod, node, self.state)
            if rejection is not None:
                self.rejections[name] = rejection
                return False
        return True


def enough_nodes(total: int) -> int:
    """How many feasible nodes to look for: the more nodes, the smaller a share of them."""
    if total < _ENOUGH_NODES:
        return total
    share = max(5, 50 - total // 125)
    return max(_ENOUGH_NODES, total * share // 100)


def _no_fit(state: ClusterState, rejections: dict[str, Rejection]) -> NoFit:
    return NoFit(len(state.nodes), nodes=dict(rejections))


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


def _contested(pod: PodFacts, state: ClusterState) -> frozenset[str]:
    return frozenset(
        name for name in state.nominated if name in state.nodes and _expected(pod, name, state)
    )
