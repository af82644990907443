"""A pod with what the scheduler reads of it more than once, computed once. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from msgspec import structs

from kvestigate.kube import node_selection
from kvestigate.kube.feasibility import selection
from kvestigate.kube.keys import Key, key_of
from kvestigate.kube.requests import ASSUMED, Amounts, requests_of
from kvestigate.kube.views.placement import PodAffinity
from kvestigate.kube.views.pods import Pod, PodStatus

Port = tuple[str, str, int]
"""Address, protocol and number on the host."""

_EVERY_ADDRESS = "0.0.0.0"  # what a port without `hostIP` listens on
_SPREAD_OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController")


@dataclass(frozen=True, slots=True)
class Alike:
    """Pods of one namespace with the same labels."""

    namespace: str
    terminating: bool
    pairs: frozenset[tuple[str, str]]
    labels: node_selection.Labels = field(compare=False)
    """The same as `pairs`."""


@dataclass(eq=False)
class PodFacts:
    """One pod; a changed pod gets new facts."""

    pod: Pod
    key: Key = field(init=False)
    uid: str = field(init=False)
    requests: Amounts = field(init=False)
    assumed: Amounts = field(init=False)
    """Requests as scores see them: containers that do not say count for a little."""
    ports: tuple[Port, ...] = field(init=False)
    claims: tuple[str, ...] = field(init=False)
    """Names of its persistent volume claims."""

    def __post_init__(self) -> None:
        spec = self.pod.spec
        sidecars = [item for item in spec.init_containers if item.restart_policy == "Always"]
        self.key = key_of(self.pod)
        self.uid = self.pod.metadata.uid
        self.requests = requests_of(spec)
        self.assumed = requests_of(spec, ASSUMED)
        self.ports = tuple(
            (port.host_ip or _EVERY_ADDRESS, port.protocol, port.host_port)
            for container in (*spec.containers, *sidecars)
            for port in container.ports
            if port.host_port > 0
        )
        self.claims = tuple(
            volume.persistent_volume_claim.claim_name
            if volume.persistent_volume_claim
            else f"{self.pod.metadata.name}-{volume.name}"
            for volume in spec.volumes
            if volume.persistent_volume_claim or volume.ephemeral
        )

    @property
    def labels(self) -> node_selection.Labels:
        return self.pod.metadata.labels

    @property
    def priority(self) -> int:
        return self.pod.spec.priority

    @property
    def terminating(self) -> bool:
        return self.pod.metadata.deletion_timestamp is not None

    @cached_property
    def family(self) -> str:
        """The uid of the controller whose pods are spread by default; empty if there is none."""
        for owner in self.pod.metadata.owner_references:
            if owner.controller and owner.kind in _SPREAD_OWNERS:
                return owner.uid
        return ""

    @cached_property
    def affinity(self) -> tuple[selection.Term, ...]:
        return self._required(self._attraction)

    @cached_property
    def anti_affinity(self) -> tuple[selection.Term, ...]:
        return self._required(self._repulsion)

    @cached_property
    def preferences(self) -> tuple[selection.Term, ...]:
        """Preferred affinity with its weights, and anti-affinity with negative ones."""
        drawn = self._preferred(self._attraction, 1)
        return drawn + self._preferred(self._repulsion, -1)

    @cached_property
    def required_nodes(self) -> node_selection.NodeTest | None:
        return node_selection.required_nodes(self.pod.spec.node_selector, self.pod.spec.affinity)

    @cached_property
    def alike(self) -> Alike:
        pairs = frozenset(self.labels.items())
        return Alike(self.key.namespace, self.terminating, pairs, self.labels)

    @property
    def _attraction(self) -> PodAffinity | None:
        affinity = self.pod.spec.affinity
        return affinity.pod_affinity if affinity else None

    @property
    def _repulsion(self) -> PodAffinity | None:
        affinity = self.pod.spec.affinity
        return affinity.pod_anti_affinity if affinity else None

    def _required(self, affinity: PodAffinity | None) -> tuple[selection.Term, ...]:
        terms = affinity.required if affinity else ()
        namespace = self.key.namespace
        return tuple(selection.pod_term(term, namespace, self.labels) for term in terms)

    def _preferred(self, affinity: PodAffinity | None, sign: int) -> tuple[selection.Term, ...]:
        terms = affinity.preferred if affinity else ()
        namespace = self.key.namespace
        return tuple(
            selection.pod_term(term.pod_affinity_term, namespace, self.labels, sign * term.weight)
            for term in terms
        )


def replacement(pod: Pod) -> PodFacts:
    """The pod that a controller creates when this one is gone: the same spec, not placed yet."""
    return PodFacts(
        structs.replace(
            pod,
            metadata=structs.replace(
                pod.metadata, uid=f"{pod.metadata.uid}+", deletion_timestamp=None
            ),
            spec=structs.replace(pod.spec, node_name=""),
            status=PodStatus(),
        )
    )
