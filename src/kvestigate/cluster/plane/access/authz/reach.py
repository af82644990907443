"""Whether a pod on a node refers to an object, so that the node's kubelet may read it.

Every answer comes from the state itself. Kubelets read the same objects again and again, so the
pod that was the reason last time is remembered and looked at first; it is checked every time.
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
_MAX_REMEMBERED = 4096

_decode = msgspec.json.Decoder().decode
_referring_pods: dict[tuple[str, str, str, str], str] = {}
"""(node, plural, namespace, name) -> the pod that referred to the object last time."""


def reaches(state: PlaneState, node: str, plural: str, namespace: str, name: str) -> bool:
    """Whether the object is bound to the node, or a pod that is refers to it."""
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
    encoded_name = name.encode()
    for item in state.collection(_VOLUMES).items():
        if encoded_name not in item.data:
            continue
        spec = _decode(item.data)["spec"]
        refers = (namespace, name) in references.volume_secrets(spec)
        if refers and _reaches_volume(state, node, spec):
            return True
    return False


def _pod_refers(state: PlaneState, node: str, plural: str, namespace: str, name: str) -> bool:
    key = (node, plural, namespace, name)
    last = state.get(PODS, namespace, _referring_pods.get(key, ""))
    if last is not None and bound_to(last) == node and _refers(last, plural, name):
        return True
    bucket = state.collection(PODS).buckets.get(namespace)
    for item in bucket.items.values() if bucket is not None else ():
        if bound_to(item) == node and _refers(item, plural, name):
            if len(_referring_pods) >= _MAX_REMEMBERED:
                _referring_pods.clear()
            _referring_pods[key] = item.name
            return True
    return False


def _refers(item: Item, plural: str, name: str) -> bool:
    pod: Object = _decode(item.data)
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        return False  # made by a kubelet, which must not grant itself access with it
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
