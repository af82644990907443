"""Scores of nodes for pods of one equivalence class, kept until the node changes. Pure.

Pods come in large numbers from few templates. After each placement only one node has changed, so
the next pod of the template costs one look at one node, however many there are.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable
from random import Random

from kvestigate.cluster.scheduler.framework import Grade, Judge, Rejection
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.registry import Profile
from kvestigate.cluster.scheduler.state import ClusterState

_CLASSES = 256
"""Classes that are kept; the ones unused longest are dropped."""


class ClassScores:
    """Verdicts and scores of the local plugins for one equivalence class."""

    def __init__(
        self, judges: list[Judge], grades: list[tuple[Grade, int]], random: Random
    ) -> None:
        self.rejections: dict[str, Rejection] = {}
        self.scores: dict[str, int] = {}
        """Of the nodes that are not rejected."""
        self._judges = judges
        self._grades = grades
        self._random = random
        self._best: list[tuple[int, float, str]] = []
        self._epoch = -1
        self._seen = 0

    def refresh(self, state: ClusterState) -> None:
        """Score again the nodes that have changed since the last call."""
        if self._epoch != state.epoch:
            self.rejections.clear()
            self.scores.clear()
            self._best.clear()
            self._epoch, self._seen = state.epoch, 0
        latest = self._seen
        for name, change in reversed(state.changes.items()):
            if change <= self._seen:
                break
            latest = max(latest, change)
            self._look(name, state)
        self._seen = latest

    def best(self, accepts: Callable[[str], bool]) -> str | None:
        """The acceptable node with the highest score; any of them when several have it."""
        heap, scores = self._best, self.scores
        passed = []
        best = None
        while heap:
            entry = heap[0]
            name = entry[2]
            if scores.get(name) != -entry[0]:
                heapq.heappop(heap)  # the node has changed since
            elif accepts(name):
                best = name
                break
            else:
                passed.append(heapq.heappop(heap))
        for entry in passed:
            heapq.heappush(heap, entry)
        return best

    def _look(self, name: str, state: ClusterState) -> None:
        node = state.nodes[name]
        for judge in self._judges:
            rejection = judge(node)
            if rejection is not None:
                self.rejections[name] = rejection
                self.scores.pop(name, None)
                return
        self.rejections.pop(name, None)
        score = 0
        for grade, weight in self._grades:
            score += grade(node) * weight
        self.scores[name] = score
        if len(self._best) > 4 * len(self.scores) + 64:
            self._best = [(-known, self._random.random(), at) for at, known in self.scores.items()]
            heapq.heapify(self._best)
        else:
            heapq.heappush(self._best, (-score, self._random.random(), name))


class ScoreCache:
    """The scores of all equivalence classes of one scheduler."""

    def __init__(self, profile: Profile, random: Random) -> None:
        self._profile = profile
        self._random = random
        self._known: OrderedDict[bytes, ClassScores] = OrderedDict()

    def of(self, pod: PodFacts, state: ClusterState) -> ClassScores:
        """The current scores for pods like this one."""
        known = self._known.get(pod.equivalence)
        if known is None:
            known = self._known[pod.equivalence] = self._new(pod, state)
            if len(self._known) > _CLASSES:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(pod.equivalence)
        known.refresh(state)
        return known

    def _new(self, pod: PodFacts, state: ClusterState) -> ClassScores:
        judges = [
            judge
            for plugin in self._profile.filters
            if plugin.local
            for judge in _judges(plugin.judge, pod, state)
        ]
        grades = [
            (grade, weight)
            for plugin, weight in self._profile.scorers
            if plugin.local
            for grade in [plugin.grade(pod, state, ())]
            if grade is not None
        ]
        return ClassScores(judges, grades, self._random)


def _judges(
    ask: Callable[[PodFacts, ClusterState], Judge | Rejection | None],
    pod: PodFacts,
    state: ClusterState,
) -> list[Judge]:
    verdict = ask(pod, state)
    if verdict is None:
        return []
    if isinstance(verdict, Rejection):
        return [lambda node: verdict]
    return [verdict]
