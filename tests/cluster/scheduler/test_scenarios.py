"""Decisions and their words, as the real kube-scheduler was seen to make them."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from kvestigate.client.cache import key_of
from kvestigate.cluster.scheduler.decision import Decider, Placement
from kvestigate.cluster.scheduler.preemption import refuse
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.kube.views.storage import PersistentVolumeClaim, StorageClass
from tests.bed import Object
from tests.cluster.scheduler.scenarios import EXPECTED, PRIORITIES, SCENARIOS, Outcome, Scenario


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_decides_as_kube_scheduler_does(scenario: Scenario) -> None:
    state = _state(scenario)
    pod = _facts(scenario.pod)
    decider = Decider(random=Random(1))
    decision = decider.decide(pod, state)
    if isinstance(decision, Placement):
        outcome = Outcome(decision.node, "")
    else:
        refusal = refuse(pod, decision, state, decider, Random(1))
        victims = refusal.preemption.victims if refusal.preemption else ()
        evicted = frozenset(victim.key.name for victim in victims)
        outcome = Outcome("", refusal.message, refusal.nominated or "", evicted)
    assert outcome == EXPECTED[scenario.name]


def test_every_scenario_has_its_outcome() -> None:
    assert {scenario.name for scenario in SCENARIOS} == EXPECTED.keys()


def _state(scenario: Scenario) -> ClusterState:
    state = ClusterState()
    state.namespaces["default"] = {}
    for node in scenario.nodes:
        state.set_node(msgspec.convert(node, Node))
    for pod in scenario.present:
        state.place(_facts(pod), pod["spec"]["nodeName"])
    for kind, body in scenario.others:
        if kind == "storageclasses":
            state.classes[body["metadata"]["name"]] = msgspec.convert(body, StorageClass)
        elif kind == "persistentvolumeclaims":
            claim = msgspec.convert(_in_default(body), PersistentVolumeClaim)
            state.claims[key_of(claim)] = claim
        elif kind == "poddisruptionbudgets":
            budget = msgspec.convert(_in_default(body), PodDisruptionBudget)
            state.budgets[key_of(budget)] = budget
    return state


def _facts(manifest: Object) -> PodFacts:
    """What an API server would make of it: in a namespace, with a uid and a priority."""
    manifest = _in_default(manifest)
    spec = dict(manifest["spec"])
    kind = spec.get("priorityClassName", "")
    spec["priority"] = PRIORITIES.get(kind, 0)
    spec["preemptionPolicy"] = "Never" if kind == "polite" else "PreemptLowerPriority"
    return PodFacts(msgspec.convert({**manifest, "spec": spec}, Pod))


def _in_default(body: Object) -> Object:
    name = body["metadata"]["name"]
    return {**body, "metadata": {**body["metadata"], "namespace": "default", "uid": name}}
