"""Filters that look at one node: name, cordon, taints, labels, ports, free resources. Pure."""

from __future__ import annotations

from kvestigate.kube.eligibility import tolerates, untolerated
from kvestigate.kube.feasibility.framework import Judge, Rejection
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.requests import CPU, MEMORY
from kvestigate.kube.views.core import Taint

HARD = ("NoSchedule", "NoExecute")
"""Effects of taints that keep pods away."""
_CORDONED = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
_FIRST = (CPU, MEMORY, "ephemeral-storage")


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


class TaintToleration:
    """Taints keep pods away that do not tolerate them."""

    name = "TaintToleration"
    _rejection = Rejection(name, ("node(s) had untolerated taint(s)",), resolvable=False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        tolerations = pod.pod.spec.tolerations

        def judge(node: NodeState) -> Rejection | None:
            return self._rejection if untolerated(tolerations, node.taints, HARD) else None

        return judge


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


class Fit:
    name = "NodeResourcesFit"

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge:
        wanted = [
            (resource, amount)
            for resource, amount in sorted(pod.requests.items(), key=_position)
            if amount > 0
        ]

        def judge(node: NodeState) -> Rejection | None:
            allocatable, requested = node.allocatable, node.requested
            if len(node.pods) < node.room:
                for resource, amount in wanted:
                    if amount > allocatable.get(resource, 0) - requested.get(resource, 0):
                        break
                else:
                    return None
            return _explain(node, wanted)

        return judge


def _explain(node: NodeState, wanted: list[tuple[str, int]]) -> Rejection:
    reasons = ["Too many pods"] if len(node.pods) >= node.room else []
    resolvable = True
    for resource, amount in wanted:
        allocatable = node.allocatable.get(resource, 0)
        if amount > allocatable - node.requested.get(resource, 0):
            reasons.append(f"Insufficient {resource}")
            resolvable = resolvable and amount <= allocatable
    return Rejection(Fit.name, tuple(reasons), resolvable)


def _position(item: tuple[str, int]) -> tuple[int, str]:
    resource = item[0]
    return (_FIRST.index(resource) if resource in _FIRST else len(_FIRST), resource)
