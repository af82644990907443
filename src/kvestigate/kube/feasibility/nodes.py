"""A node and the resources that its pods use, updated pod by pod. Pure."""

from __future__ import annotations

from kvestigate.kube.feasibility.pods import PodFacts, Port
from kvestigate.kube.requests import PODS, Amounts, amounts
from kvestigate.kube.views.core import Node, Taint

_EVERY_ADDRESS = "0.0.0.0"


class NodeState:
    """What plugins read of one node; only a `ClusterState` changes it."""

    __slots__ = (
        "allocatable",
        "assumed",
        "labels",
        "name",
        "node",
        "pods",
        "ports",
        "requested",
        "room",
        "taints",
    )

    def __init__(self, node: Node) -> None:
        self.name = node.metadata.name
        self.pods: dict[str, PodFacts] = {}
        """By uid."""
        self.requested: Amounts = {}
        self.assumed: Amounts = {}
        """Requested, as scores see it."""
        self.ports: dict[Port, int] = {}
        self.update(node)

    def update(self, node: Node) -> None:
        self.node = node
        self.labels: dict[str, str] = node.metadata.labels
        self.taints: tuple[Taint, ...] = node.spec.taints
        self.allocatable: Amounts = amounts(node.status.allocatable or node.status.capacity)
        self.room = self.allocatable.get(PODS, 0)
        """How many pods may be on it."""

    def add(self, pod: PodFacts) -> None:
        self.pods[pod.uid] = pod
        _add(self.requested, pod.requests, 1)
        _add(self.assumed, pod.assumed, 1)
        for port in pod.ports:
            self.ports[port] = self.ports.get(port, 0) + 1

    def remove(self, pod: PodFacts) -> None:
        del self.pods[pod.uid]
        _add(self.requested, pod.requests, -1)
        _add(self.assumed, pod.assumed, -1)
        for port in pod.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]

    def port_taken(self, wanted: Port) -> bool:
        """Whether a pod uses the port. 0.0.0.0 conflicts with every address."""
        if not self.ports:
            return False
        address, protocol, number = wanted
        if address == _EVERY_ADDRESS:
            return any(port[1:] == (protocol, number) for port in self.ports)
        return wanted in self.ports or (_EVERY_ADDRESS, protocol, number) in self.ports


def _add(total: Amounts, more: Amounts, sign: int) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount
