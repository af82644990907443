"""Which volumes a pod's claims get on a node: those bound, found, or still to be made. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvestigate.kube import quantities
from kvestigate.kube.feasibility.framework import Judge, Rejection
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.selection import label_selector
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.keys import Key, key_of
from kvestigate.kube.node_selection import node_selector
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""The annotation that tells provisioners where a claim's volume is needed."""
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
_LATER = "WaitForFirstConsumer"
_SEVERAL = "__"
"""Between the zones of one label of a volume."""
_ZONES = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels of zones and regions, each with its present name."""

ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
NONE_FREE = "node(s) didn't find available persistent volumes to bind"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of one pod."""

    bound: tuple[PersistentVolumeClaim, ...]
    waiting: tuple[PersistentVolumeClaim, ...]
    """Those that are bound only when their pod has a node."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is left to do for a pod's claims before it can be bound."""

    found: tuple[tuple[Key, str], ...] = ()
    """Claims with the names of the volumes that they get."""
    to_make: tuple[Key, ...] = ()
    """Claims for which a volume has to be made."""


@dataclass(frozen=True, slots=True)
class Trouble:
    reasons: tuple[str, ...]


def claims_of(pod: PodFacts, state: ClusterState) -> Claims | str:
    """The pod's claims, or why no node will do."""
    bound: list[PersistentVolumeClaim] = []
    waiting: list[PersistentVolumeClaim] = []
    immediate = False
    for name in pod.claims:
        claim = state.claims.get(Key(pod.key.namespace, name))
        problem = _problem(pod, name, claim)
        if claim is None or problem:
            return problem
        if _is_bound(claim):
            bound.append(claim)
        elif _waits(claim, state):
            waiting.append(claim)
        else:
            immediate = True
    if immediate:
        return "pod has unbound immediate PersistentVolumeClaims"
    return Claims(tuple(bound), tuple(waiting))


def _problem(pod: PodFacts, name: str, claim: PersistentVolumeClaim | None) -> str:
    made_for_pod = any(
        volume.ephemeral and f"{pod.key.name}-{volume.name}" == name
        for volume in pod.pod.spec.volumes
    )
    if claim is None:
        if made_for_pod:
            return (
                "waiting for ephemeral volume controller to create the"
                f' persistentvolumeclaim "{name}"'
            )
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if made_for_pod and not any(owner.uid == pod.uid for owner in claim.metadata.owner_references):
        where = f"{claim.metadata.namespace}/{name}"
        return f"PVC {where} was not created for pod {pod.key} (pod is not owner)"
    return ""


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    if not claim.spec.volume_name:
        return False
    return claim.status.phase == "Bound" or _BIND_COMPLETED in claim.metadata.annotations


def _waits(claim: PersistentVolumeClaim, state: ClusterState) -> bool:
    kind = state.classes.get(claim.spec.storage_class_name or "")
    return kind is not None and kind.volume_binding_mode == _LATER and not claim.spec.volume_name


def plan(claims: Claims, node: NodeState, state: ClusterState) -> Plan | Trouble:
    """How the claims could be satisfied on a node."""
    reasons = _check_bound(claims.bound, node, state)
    chosen: dict[Key, str] = {}
    to_make: list[PersistentVolumeClaim] = []
    for claim in sorted(claims.waiting, key=_size):
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected is not None and selected != node.name:
            return Trouble((*reasons, NONE_FREE))
        volume = None if selected else _free_volume(claim, node, state, chosen.values())
        if volume is None:
            to_make.append(claim)
        else:
            chosen[key_of(claim)] = volume.metadata.name
    if not all(_can_be_made(claim, node, state) for claim in to_make):
        reasons.append(NONE_FREE)
    if reasons:
        return Trouble(tuple(reasons))
    return Plan(tuple(chosen.items()), tuple(map(key_of, to_make)))


def _check_bound(
    claims: Iterable[PersistentVolumeClaim], node: NodeState, state: ClusterState
) -> list[str]:
    for claim in claims:
        volume = state.volumes.get(claim.spec.volume_name)
        if volume is None:
            return [LOST]
        if not _reachable(volume, node):
            return [ELSEWHERE]
    return []


def _reachable(volume: PersistentVolume, node: NodeState) -> bool:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return node_selector(affinity.required)(node.name, node.labels)


def _free_volume(
    claim: PersistentVolumeClaim, node: NodeState, state: ClusterState, taken: Iterable[str]
) -> PersistentVolume | None:
    """The smallest volume that will do."""
    suitable = [
        volume
        for volume in state.volumes.values()
        if volume.metadata.name not in taken and _suits(volume, claim) and _reachable(volume, node)
    ]
    return min(suitable, key=_capacity, default=None)


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    spec = volume.spec
    if spec.claim_ref is not None:
        mine = (claim.metadata.namespace, claim.metadata.name)
        if (spec.claim_ref.namespace, spec.claim_ref.name) != mine:
            return False
        if spec.claim_ref.uid not in ("", claim.metadata.uid):
            return False
    wanted = claim.spec.selector
    if wanted is not None and not label_selector(wanted).matches(volume.metadata.labels):
        return False
    return (
        spec.storage_class_name == (claim.spec.storage_class_name or "")
        and spec.volume_mode == claim.spec.volume_mode
        and set(claim.spec.access_modes) <= set(spec.access_modes)
        and _capacity(volume) >= _size(claim)
        and volume.metadata.deletion_timestamp is None
        and (spec.claim_ref is not None or volume.status.phase == "Available")
    )


def _size(claim: PersistentVolumeClaim) -> int:
    return quantities.whole(claim.spec.resources.requests.get("storage", "0"))


def _capacity(volume: PersistentVolume) -> int:
    return quantities.whole(volume.spec.capacity.get("storage", "0"))


def _can_be_made(claim: PersistentVolumeClaim, node: NodeState, state: ClusterState) -> bool:
    kind = state.classes.get(claim.spec.storage_class_name or "")
    if kind is None or kind.provisioner in _NO_PROVISIONER:
        return False
    return _allowed(kind, node)


def _allowed(kind: StorageClass, node: NodeState) -> bool:
    return not kind.allowed_topologies or any(
        all(node.labels.get(item.key) in item.values for item in term.match_label_expressions)
        for term in kind.allowed_topologies
    )


class VolumeRestrictions:
    """A claim with the access mode ReadWriteOncePod serves one pod at a time."""

    name = "VolumeRestrictions"
    _taken = Rejection(
        name,
        (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
            " already in-use by another pod",
        ),
    )

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | Rejection | None:
        exclusive = []
        for name in pod.claims:
            key = Key(pod.key.namespace, name)
            claim = state.claims.get(key)
            if claim is None:
                return Rejection(self.name, (f'persistentvolumeclaim "{name}" not found',), False)
            if "ReadWriteOncePod" in claim.spec.access_modes:
                exclusive.append(key)
        if not any(True for key in exclusive for _ in state.users_of(key)):
            return None
        return self._judge

    def _judge(self, node: NodeState) -> Rejection:
        return self._taken


class VolumeBinding:
    """A pod goes where its volumes are, or where they can be made."""

    name = "VolumeBinding"

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | Rejection | None:
        if not pod.claims:
            return None
        claims = claims_of(pod, state)
        if isinstance(claims, str):
            return Rejection(self.name, (claims,), resolvable=False)
        return self._judge(claims, state)

    def _judge(self, claims: Claims, state: ClusterState) -> Judge:
        def judge(node: NodeState) -> Rejection | None:
            planned = plan(claims, node, state)
            if isinstance(planned, Trouble):
                return Rejection(self.name, planned.reasons, resolvable=False)
            return None

        return judge


class VolumeZone:
    """A volume that is labelled with a zone or region is used from nodes there."""

    name = "VolumeZone"
    _rejection = Rejection(name, ("node(s) had no available volume zone",), resolvable=False)

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        wanted = [
            (key, frozenset(value.split(_SEVERAL)))
            for volume in _bound_volumes(pod, state)
            for key, value in volume.metadata.labels.items()
            if key in _ZONES
        ]
        if not wanted:
            return None

        def judge(node: NodeState) -> Rejection | None:
            if not any(key in node.labels for key in _ZONES):
                return None
            if all(_in_zone(node, key, values) for key, values in wanted):
                return None
            return self._rejection

        return judge


def _bound_volumes(pod: PodFacts, state: ClusterState) -> Iterator[PersistentVolume]:
    for name in pod.claims:
        claim = state.claims.get(Key(pod.key.namespace, name))
        volume = state.volumes.get(claim.spec.volume_name) if claim else None
        if volume is not None:
            yield volume


def _in_zone(node: NodeState, key: str, values: frozenset[str]) -> bool:
    value = node.labels.get(key) or node.labels.get(_ZONES[key])
    return value in values
