"""Decisions on random small clusters, judged by an oracle that shares no code with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from kvestigate.cluster.scheduler.decision import Decider, NoFit, Placement, enough_nodes
from kvestigate.cluster.scheduler.preemption import Preemption, preempt
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from tests.cluster.scheduler.oracle import REQUIRED, feasible

Object = dict[str, Any]

ZONE, HOST = "zone", "host"
SEEDS = range(12)
CLUSTERS = 80
"""How many are made from each seed."""


class Maker:
    """Random manifests, with just enough in them that most pods still fit somewhere."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def clusters(self) -> Iterator[tuple[list[Object], list[Object], list[Object]]]:
        """Nodes, pods that are placed whatever they wish for, and pods to place."""
        for _ in range(CLUSTERS):
            found = [self.node(f"n{number}") for number in range(self.random.randint(1, 4))]
            placed = [self.pod(f"old{number}") for number in range(self.random.randint(0, 7))]
            for each in placed:
                each["spec"]["nodeName"] = self.random.choice(found)["metadata"]["name"]
            yield found, placed, [self.pod(f"new{number}") for number in range(4)]

    def node(self, name: str) -> Object:
        labels = {HOST: name, ZONE: self.random.choice("ab")}
        if self.chance(0.15):
            del labels[self.random.choice((HOST, ZONE))]
        room = {"cpu": str(self.random.randint(2, 8)), "pods": str(self.random.randint(3, 9))}
        if self.chance(0.5):
            room["example.com/dongle"] = "1"
        spec: Object = {"unschedulable": self.chance(0.1)}
        if self.chance(0.3):
            effect = self.random.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
            value = self.random.choice(("x", "y", ""))
            spec["taints"] = [{"key": self.random.choice("tu"), "value": value, "effect": effect}]
        meta = {"name": name, "labels": labels}
        return {"metadata": meta, "spec": spec, "status": {"allocatable": room}}

    def pod(self, name: str) -> Object:
        requests = {"cpu": str(self.random.randint(0, 2))}
        if self.chance(0.15):
            requests["example.com/dongle"] = "1"
        container: Object = {"name": "c", "resources": {"requests": requests}}
        if self.chance(0.25):
            container["ports"] = [self.port()]
        spec: Object = {"containers": [container], "priority": self.random.randint(0, 2)}
        if self.chance(0.2):
            spec["tolerations"] = [self.toleration()]
        if self.chance(0.1):
            spec["nodeSelector"] = {ZONE: "a"}
        if self.chance(0.35):
            spec["topologySpreadConstraints"] = self.some(self.spread)
        spec["affinity"] = self.affinity()
        meta = {"name": name, "uid": name, "namespace": self.random.choice(("one", "one", "two"))}
        return {"metadata": {**meta, "labels": {"app": self.app()}}, "spec": spec}

    def affinity(self) -> Object:
        made: Object = {}
        if self.chance(0.15):
            terms = [{"matchExpressions": self.some(self.expression)} for _ in range(2)]
            made["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
        if self.chance(0.25):
            made["podAffinity"] = {REQUIRED: self.some(self.neighbour)}
        if self.chance(0.2):
            made["podAntiAffinity"] = {REQUIRED: self.some(self.neighbour)}
        return made

    def port(self) -> Object:
        address = self.random.choice(("", "10.0.0.1", "10.0.0.2"))
        return {"hostPort": 80} | ({"hostIP": address} if address else {})

    def toleration(self) -> Object:
        return self.random.choice(
            (
                {"operator": "Exists"},
                {"key": "t", "operator": "Exists"},
                {"key": "t", "operator": "Equal", "value": "x"},
                {"key": "u", "operator": "Equal", "value": "y", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
            )
        )

    def expression(self) -> Object:
        operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        made: Object = {"key": self.key(), "operator": operator}
        if operator in ("In", "NotIn"):
            made["values"] = self.random.sample(["a", "b", "n0", "n1"], 2)
        return made

    def neighbour(self) -> Object:
        made: Object = {"topologyKey": self.key(), "labelSelector": self.selector()}
        if self.chance(0.4):
            made["namespaces"] = self.random.sample(["one", "two"], self.random.randint(1, 2))
        return made

    def spread(self) -> Object:
        when = self.random.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
        made = {
            "topologyKey": self.key(),
            "labelSelector": self.selector(),
            "maxSkew": self.random.randint(1, 2),
            "whenUnsatisfiable": when,
        }
        if when == "DoNotSchedule" and self.chance(0.4):
            made["minDomains"] = self.random.randint(1, 3)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if self.chance(0.6):
                made[policy] = self.random.choice(("Honor", "Ignore"))
        return made

    def selector(self) -> Object:
        return {"matchLabels": {"app": self.app()}}

    def app(self) -> str:
        return self.random.choice(("web", "web", "db"))

    def key(self) -> str:
        return self.random.choice((ZONE, HOST))

    def some(self, make: Callable[[], Object]) -> list[Object]:
        return [make() for _ in range(self.random.choice((1, 1, 2)))]

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability


def facts(manifest: Object) -> PodFacts:
    return PodFacts(msgspec.convert(manifest, Pod))


def state_of(found: list[Object], placed: list[Object]) -> ClusterState:
    state = ClusterState()
    for each in placed[::2]:  # pods may be heard of before their nodes
        state.place(facts(each), each["spec"]["nodeName"])
    for node in found:
        state.set_node(msgspec.convert(node, Node))
    for each in placed[1::2]:
        state.place(facts(each), each["spec"]["nodeName"])
    return state


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pod_gets_a_node_exactly_when_there_is_one_for_it(seed: int) -> None:
    for cluster in Maker(seed).clusters():
        _a_pod_gets_a_node_exactly_when_there_is_one_for_it(*cluster)


def _a_pod_gets_a_node_exactly_when_there_is_one_for_it(
    found: list[Object], placed: list[Object], waiting: list[Object]
) -> None:
    state = state_of(found, placed)
    decider = Decider(random=Random(1))
    for manifest in waiting:
        pod = facts(manifest)
        right = feasible(manifest, found, placed)
        singly = {name for name in state.nodes if not decider.fits(pod, state.nodes[name], state)}
        assert singly == right
        decision = decider.decide(pod, state)
        if isinstance(decision, NoFit):
            assert not right
            assert decision.nodes.keys() == state.nodes.keys()
        else:
            assert decision.node in right
            state.place(pod, decision.node)
            spec = {**manifest["spec"], "nodeName": decision.node}
            placed = [*placed, {**manifest, "spec": spec}]


@pytest.mark.parametrize("seed", SEEDS)
def test_after_changes_decisions_are_those_of_a_fresh_state(seed: int) -> None:
    for cluster in Maker(seed).clusters():
        _after_changes_decisions_are_those_of_a_fresh_state(*cluster)


def _after_changes_decisions_are_those_of_a_fresh_state(
    found: list[Object], placed: list[Object], waiting: list[Object]
) -> None:
    state = state_of(found, placed)
    experienced = Decider(random=Random(1))
    for manifest in waiting:
        experienced.decide(facts(manifest), state)
    if placed:
        state.take_away(placed[0]["metadata"]["uid"])
    changed = {**found[0], "spec": {}}
    state.set_node(msgspec.convert(changed, Node))
    if len(found) > 1:
        state.drop_node(found[1]["metadata"]["name"])
    left = [changed, *found[2:]]
    names = [node["metadata"]["name"] for node in left]
    still = [each for each in placed[1:] if each["spec"]["nodeName"] in names]
    afresh = state_of(left, still)
    for manifest in waiting:
        pod = facts(manifest)
        known = experienced.decide(pod, state)
        fresh = Decider(random=Random(1)).decide(pod, afresh)
        assert isinstance(known, NoFit) == isinstance(fresh, NoFit)
        if isinstance(known, NoFit):
            assert str(known) == str(fresh)


@pytest.mark.parametrize("seed", SEEDS)
def test_victims_are_lesser_and_enough_and_none_too_many(seed: int) -> None:
    for cluster in Maker(seed).clusters():
        _victims_are_lesser_and_enough_and_none_too_many(*cluster)


def _victims_are_lesser_and_enough_and_none_too_many(
    found: list[Object], placed: list[Object], waiting: list[Object]
) -> None:
    state = state_of(found, placed)
    decider = Decider(random=Random(1))
    for manifest in waiting:
        pod = facts(manifest)
        decision = decider.decide(pod, state)
        if isinstance(decision, Placement):
            continue
        before = {name: dict(node.requested) for name, node in state.nodes.items()}
        outcome = preempt(pod, decision, state, decider, Random(1))
        assert {name: dict(node.requested) for name, node in state.nodes.items()} == before
        if not isinstance(outcome, Preemption):
            continue
        victims = {victim.uid for victim in outcome.victims}
        assert victims
        assert all(victim.priority < pod.priority for victim in outcome.victims)
        rest = [each for each in placed if each["metadata"]["uid"] not in victims]
        assert outcome.node in feasible(manifest, found, rest)
        assert outcome.node not in feasible(manifest, found, placed)


@pytest.mark.parametrize(
    ("total", "enough"), [(1, 1), (99, 99), (100, 100), (250, 120), (1000, 420), (6000, 300)]
)
def test_of_many_nodes_only_a_share_is_compared(total: int, enough: int) -> None:
    assert enough_nodes(total) == enough
