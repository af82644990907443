"""Plugins that look at the node alone: its name, cordon, taints, labels and host ports."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.cluster.scheduler.framework import Grade, Judge, Rejection, in_proportion
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.selection import node_term
from kvestigate.cluster.scheduler.state import ClusterState
from kvestigate.kube.eligibility import tolerates, untolerated
from kvestigate.kube.views.core import Taint

HARD = ("NoSchedule", "NoExecute")
"""Effects of taints that keep pods away."""
_CORDONED = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    """Cordoned nodes take only pods that tolerate it."""

    name = "NodeUnschedulable"
    _rejection = Rejection(name, ("node(s) were unschedulable",), resolvable=False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        if any(tolerates(toleration, _CORDONED) for toleration in pod.pod.spec.tolerations):
            return None
        return self._judge

    def _judge(self, node: NodeState) -> Rejection | None:
        return self._rejection if node.node.spec.unschedulable else None


class NodeName:
    """A pod that names its node gets no other."""

    name = "NodeName"
    _rejection = Rejection(name, ("node(s) didn't match the requested node name",), False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        wanted = pod.pod.spec.node_name
        if not wanted:
            return None

        def judge(node: NodeState) -> Rejection | None:
            return None if node.name == wanted else self._rejection

        return judge


_SOFT = "PreferNoSchedule"


class TaintToleration:
    """Taints keep pods away that do not tolerate them."""

    name = "TaintToleration"
    _rejection = Rejection(name, ("node(s) had untolerated taint(s)",), resolvable=False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        tolerations = pod.pod.spec.tolerations

        def judge(node: NodeState) -> Rejection | None:
            return self._rejection if untolerated(tolerations, node.taints, HARD) else None

        return judge


class SoftTaints:
    """`PreferNoSchedule` taints make nodes less welcome."""

    name = "TaintToleration"

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        if not any(taint.effect == _SOFT for node in nodes for taint in node.taints):
            return None
        tolerations = [item for item in pod.pod.spec.tolerations if item.effect in ("", _SOFT)]
        return lambda node: len(untolerated(tolerations, node.taints, [_SOFT]))

    def scores(self, grades: list[int]) -> list[int]:
        return in_proportion(grades, reverse=True)


class NodeAffinity:
    """`nodeSelector` and required node affinity: where a pod must be."""

    name = "NodeAffinity"
    _rejection = Rejection(name, ("node(s) didn't match Pod's node affinity/selector",), False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        test = pod.required_nodes
        if test is None:
            return None

        def judge(node: NodeState) -> Rejection | None:
            return None if test(node.name, node.labels) else self._rejection

        return judge


class PreferredNodes:
    """Preferred node affinity: where a pod would like to be."""

    name = "NodeAffinity"

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        affinity = pod.pod.spec.affinity
        node_affinity = affinity.node_affinity if affinity else None
        terms = [
            (node_term(item.preference), item.weight)
            for item in (node_affinity.preferred if node_affinity else ())
        ]
        if not terms:
            return None
        return lambda node: sum(weight for test, weight in terms if test(node.name, node.labels))

    def scores(self, grades: list[int]) -> list[int]:
        return in_proportion(grades)


class NodePorts:
    """Two pods cannot listen on the same port of a host."""

    name = "NodePorts"
    _rejection = Rejection(name, ("node(s) didn't have free ports for the requested pod ports",))

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        ports = pod.ports
        if not ports:
            return None

        def judge(node: NodeState) -> Rejection | None:
            return self._rejection if any(map(node.port_taken, ports)) else None

        return judge
