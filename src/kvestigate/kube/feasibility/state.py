"""The cluster as the scheduler sees it: nodes with their pods, and what pods refer to. Pure.

It changes pod by pod and node by node, never as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from kvestigate.kube.devices.inventory import Inventory
from kvestigate.kube.feasibility.indexes import Counted
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import Alike, PodFacts
from kvestigate.kube.feasibility.selection import Term
from kvestigate.kube.keys import Key
from kvestigate.kube.node_selection import Labels
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

_NO_LABELS: Labels = {}


class ClusterState:
    """Nodes, pods, volumes and budgets, as decisions read them."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.claims: dict[Key, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.budgets: dict[Key, PodDisruptionBudget] = {}
        self.devices = Inventory()
        self.namespaces: dict[str, Labels] = {}
        """Their labels, by name."""
        self.nominated: dict[str, dict[str, PodFacts]] = {}
        """Pods for which room is being made, by node and uid."""
        self.placed: Counted[Alike] = Counted()
        """Pods by node name."""
        self.families: Counted[str] = Counted()
        """Pods of a controller that are not being deleted, by node name."""
        self.repulsions: Counted[Term] = Counted()
        """Required anti-affinity of placed pods, by the value of the term's topology key."""
        self.preferences: Counted[Term] = Counted()
        """What placed pods would like: preferred terms, and required affinity as weight 1."""
        self._where: dict[str, tuple[str, PodFacts]] = {}
        self._homeless: dict[str, dict[str, PodFacts]] = {}
        self._users: dict[Key, set[str]] = {}

    # -- nodes ---------------------------------------------------------------------------------

    def set_node(self, node: Node) -> None:
        """A new node, or a new state of one."""
        name = node.metadata.name
        known = self.nodes.get(name)
        if known is None:
            self.nodes[name] = NodeState(node)
            for pod in self._homeless.pop(name, {}).values():
                self._add(pod, name)
        else:
            self._renew(known, node)

    def _renew(self, known: NodeState, node: Node) -> None:
        if known.labels == node.metadata.labels:
            known.update(node)
            return
        pods = list(known.pods.values())  # they are counted by the node's labels
        for pod in pods:
            self._remove(pod, known.name)
        known.update(node)
        for pod in pods:
            self._add(pod, known.name)

    def drop_node(self, name: str) -> None:
        known = self.nodes.get(name)
        if known is None:
            return
        pods = list(known.pods.values())
        for pod in pods:
            self._remove(pod, name)
        self._homeless[name] = {pod.uid: pod for pod in pods}
        del self.nodes[name]

    # -- pods ----------------------------------------------------------------------------------

    def place(self, pod: PodFacts, node: str) -> None:
        """The pod is on the node, or is to be counted as if it were."""
        self.take_away(pod.uid)
        self._where[pod.uid] = (node, pod)
        for claim in pod.claims:
            self._users.setdefault(Key(pod.key.namespace, claim), set()).add(pod.uid)
        if node in self.nodes:
            self._add(pod, node)
        else:
            self._homeless.setdefault(node, {})[pod.uid] = pod

    def take_away(self, uid: str) -> None:
        """The pod is gone, has ended, or was not placed after all."""
        where = self._where.pop(uid, None)
        if where is None:
            return
        node, pod = where
        for claim in pod.claims:
            users = self._users[Key(pod.key.namespace, claim)]
            users.discard(uid)
            if not users:
                del self._users[Key(pod.key.namespace, claim)]
        if node in self.nodes:
            self._remove(pod, node)
        else:
            self._homeless[node].pop(uid, None)

    def node_of(self, uid: str) -> str | None:
        where = self._where.get(uid)
        return where[0] if where else None

    def pod(self, uid: str) -> PodFacts | None:
        """A placed pod."""
        where = self._where.get(uid)
        return where[1] if where else None

    def users_of(self, claim: Key) -> Iterator[PodFacts]:
        """Placed pods that use a claim."""
        for uid in self._users.get(claim, ()):
            node, pod = self._where[uid]
            if node not in self.nodes or uid in self.nodes[node].pods:
                yield pod

    def nominate(self, pod: PodFacts, node: str) -> None:
        """Reserve room on the node for the pod."""
        self.withdraw(pod.uid)
        self.nominated.setdefault(node, {})[pod.uid] = pod

    def withdraw(self, uid: str) -> None:
        """Give up the room that was reserved for the pod."""
        for name in [name for name, pods in self.nominated.items() if uid in pods]:
            del self.nominated[name][uid]
            if not self.nominated[name]:
                del self.nominated[name]

    def namespace_labels(self, name: str) -> Labels:
        return self.namespaces.get(name, _NO_LABELS)

    # -- what if -------------------------------------------------------------------------------

    @contextmanager
    def supposing(
        self, node: str, *, without: Iterable[PodFacts] = (), along: Iterable[PodFacts] = ()
    ) -> Iterator[None]:
        """For the length of the block the node has other pods."""
        removed = list(without)
        added = list(along)
        for pod in removed:
            self._remove(pod, node)
        for pod in added:
            self._add(pod, node)
        try:
            yield
        finally:
            for pod in added:
                self._remove(pod, node)
            for pod in removed:
                self._add(pod, node)

    # -- counting ------------------------------------------------------------------------------

    def _add(self, pod: PodFacts, name: str) -> None:
        self.nodes[name].add(pod)
        self._count(pod, name, 1)

    def _remove(self, pod: PodFacts, name: str) -> None:
        self.nodes[name].remove(pod)
        self._count(pod, name, -1)

    def _count(self, pod: PodFacts, name: str, number: int) -> None:
        self.placed.add(pod.alike, name, number)
        if pod.family and not pod.terminating:
            self.families.add(pod.family, name, number)
        if pod.pod.spec.affinity is not None:
            labels = self.nodes[name].labels
            wishes = (*pod.preferences, *(replace(term, weight=1) for term in pod.affinity))
            terms = [(self.repulsions, term) for term in pod.anti_affinity]
            terms += [(self.preferences, term) for term in wishes]
            for counted, term in terms:
                if (value := labels.get(term.topology_key)) is not None:
                    counted.add(term, value, number)
