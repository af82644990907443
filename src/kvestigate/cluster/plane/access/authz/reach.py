"""What a node may see of others' objects because a pod bound to it needs them.

Every question is answered from the state itself. Kubelets ask for the same again and again, so
the pod that was the reason is remembered and looked at first.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kvestigate.cluster.plane.access.authz import references
from kvestigate.cluster.plane.access.authz.references import Object
from kvestigate.cluster.plane.kinds.podspec.annotations import MIRROR
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.store.state import PlaneState

PODS = ("", "pods")
CLAIMS = "persistentvolumeclaims"
_VOLUMES = ("", "persistentvolumes")
_ATTACHMENTS = ("storage.k8s.io", "volumeattachments")
_SLICES = ("resource.k8s.io", "resourceslices")
_REMEMBERED = 4096

_decode = msgspec.json.Decoder().decode
_reasons: dict[tuple[str, str, str, str], str] = {}


def reaches(state: PlaneState, node: str, plural: str, namespace: str, name: str) -> bool:
    """Whether an object has to do with a pod that is bound to the node."""
    if plural == "pods":
        pod = state.get(PODS, namespace, name)
        return pod is not None and bound_to(pod) == node
    if plural in ("volumeattachments", "resourceslices"):
        item = state.get(_ATTACHMENTS if plural == "volumeattachments" else _SLICES, "", name)
        return item is not None and _decode(item.data)["spec"].get("nodeName") == node
    if plural == "persistentvolumes":
        volume = state.get(_VOLUMES, "", name)
        return volume is not None and _reaches_volume(state, node, _decode(volume.data)["spec"])
    if _pod_refers(state, node, plural, namespace, name):
        return True
    return plural == "secrets" and _volume_refers(state, node, namespace, name)


def bound_to(pod: Item) -> str:
    """The node of a pod; empty if it has none yet."""
    return pod.fields[0] if pod.fields else ""


def _reaches_volume(state: PlaneState, node: str, spec: Object) -> bool:
    claim = spec.get("claimRef") or {}
    return bool(claim) and _pod_refers(
        state, node, CLAIMS, claim.get("namespace", ""), claim.get("name", "")
    )


def _volume_refers(state: PlaneState, node: str, namespace: str, name: str) -> bool:
    needle = name.encode()
    for item in state.collection(_VOLUMES).items():
        if needle not in item.data:
            continue
        spec = _decode(item.data)["spec"]
        named = (namespace, name) in references.volume_secrets(spec)
        if named and _reaches_volume(state, node, spec):
            return True
    return False


def _pod_refers(state: PlaneState, node: str, plural: str, namespace: str, name: str) -> bool:
    key = (node, plural, namespace, name)
    reason = state.get(PODS, namespace, _reasons.get(key, ""))
    if reason is not None and bound_to(reason) == node and _refers(reason, plural, name):
        return True
    bucket = state.collection(PODS).buckets.get(namespace)
    for item in bucket.items.values() if bucket is not None else ():
        if bound_to(item) == node and _refers(item, plural, name):
            if len(_reasons) >= _REMEMBERED:
                _reasons.clear()
            _reasons[key] = item.name
            return True
    return False


def _refers(item: Item, plural: str, name: str) -> bool:
    pod: Object = _decode(item.data)
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        return False  # a kubelet made it, and must not give itself anything by that
    return name in _named(pod, plural)


def _named(pod: Object, plural: str) -> Iterator[str]:
    spec = pod["spec"]
    if plural == "secrets":
        return references.secrets(spec)
    if plural == "configmaps":
        return references.config_maps(spec)
    if plural == CLAIMS:
        return references.claims(pod)
    if plural == "resourceclaims":
        return references.device_claims(pod)
    return iter((spec.get("serviceAccountName", ""),))
