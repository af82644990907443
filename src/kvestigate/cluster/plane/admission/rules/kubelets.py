"""Kubelets write what is theirs: their node, its lease, the pods bound to it. Nothing else.

A kubelet that was taken over must not draw workloads to its node, nor reach what those of other
nodes have.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.cluster.plane.access.authz import references
from kvestigate.cluster.plane.access.authz.nodes import KUBELET, LEASES, node_of
from kvestigate.cluster.plane.access.authz.reach import bound_to
from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.admission.rules import kubelet_tokens
from kvestigate.cluster.plane.admission.rules.certificates import common_name
from kvestigate.cluster.plane.kinds.podspec.annotations import MIRROR
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.model import Item
from kvestigate.errors import Forbidden, NotFound

_OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_OWN_PREFIXES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_CLUSTER_PREFIXES = ("kubernetes.io", "k8s.io")
_RESTRICTED = "node-restriction.kubernetes.io"
_CLAIM_STATUS = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")
"""What a kubelet that resizes a volume says of its claim."""
_NODE_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")


def restrict_kubelet(write: Write) -> None:
    if not write.scene.user.name.startswith(KUBELET):
        return  # nearly always, and every pod comes by here
    node = node_of(write.scene.user)
    if node is None:
        return
    if not node:
        raise _refuse(write, f'could not determine node from user "{write.scene.user.name}"')
    rule = _RULES.get((write.info.group, write.info.resource))
    for why in rule(write, node) if rule is not None else ():
        raise _refuse(write, why)


def _refuse(write: Write, why: str) -> Forbidden:
    info = write.info
    meta = write.new["metadata"]
    name = info.name or meta.get("name") or meta.get("generateName") or "Unknown"
    qualified = f"{info.resource}.{info.group}" if info.group else info.resource
    details = {"name": name, "group": info.group, "kind": info.resource}
    if not info.group:
        del details["group"]
    return Forbidden(f'{qualified} "{name}" is forbidden: {why}', details=details)


def _pod(write: Write, node: str) -> Iterator[str]:
    if write.info.subresource == "status":
        yield from _pod_status(write, node)
    elif write.info.subresource == "eviction":
        if bound_to(_existing(write, "pods", write.info.name)) != node:
            yield f"node {node} can only evict pods with spec.nodeName set to itself"
    elif write.info.subresource:
        allowed = "only 'status' and 'eviction' are allowed"
        yield f'unexpected pod subresource "{write.info.subresource}", {allowed}'
    elif write.operation == "CREATE":
        yield from _mirror(write, node)
    elif write.operation == "DELETE":
        if write.new["spec"].get("nodeName") != node:
            yield f'node "{node}" can only delete pods with spec.nodeName set to itself'
    else:
        allowed = f'node "{node}" can only create and delete mirror pods'
        yield f'unexpected operation "{write.operation}", {allowed}'


def _existing(write: Write, plural: str, name: str) -> Item:
    namespace = write.info.namespace if plural == "pods" else ""
    item = write.scene.state.get(("", plural), namespace, name)
    if item is None:
        kind = plural.removesuffix("s")
        raise NotFound(f'{kind} "{name}" not found', details={"name": name, "kind": kind})
    return item


def _mirror(write: Write, node: str) -> Iterator[str]:
    """Kubelets may only create mirror pods, bound to their own node."""
    pod = write.new
    meta, spec = pod["metadata"], pod["spec"]
    who, can = f'node "{node}"', "can only create pods with"
    if MIRROR not in (meta.get("annotations") or {}):
        yield f'pod does not have "{MIRROR}" annotation, {who} can only create mirror pods'
    if spec.get("nodeName") != node:
        yield f"{who} {can} spec.nodeName set to itself"
    owners = meta.get("ownerReferences") or []
    if len(owners) > 1:
        yield f"{who} {can} a single owner reference set to itself"
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        yield f"{who} {can} an owner reference set to itself"
    if not owner.get("controller"):
        yield f"{who} {can} a controller owner reference set to itself"
    if owner.get("blockOwnerDeletion"):
        yield f"{who} must not set blockOwnerDeletion on an owner reference"
    uid = _existing(write, "nodes", node).uid
    if owner.get("uid") != uid:
        yield f"node {node} UID mismatch: expected {owner.get('uid', '')} got {uid}"
    for what in _api_references(spec):
        yield f"{who} can not create pods that reference {what}"


def _api_references(spec: Object) -> Iterator[str]:
    """What other objects a mirror pod needs, besides those that none may name."""
    if any(references.config_maps(spec)):
        yield "configmaps"
    if spec.get("resourceClaims"):
        yield "resourceclaims"
    for volume in spec.get("volumes") or ():
        for source, what in _REFERRING_VOLUMES.items():
            if source in volume:
                yield what
        for projected in (volume.get("projected") or {}).get("sources") or ():
            for source, what in _REFERRING_PROJECTIONS.items():
                if source in projected:
                    yield what


_REFERRING_VOLUMES = {
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
}
_REFERRING_PROJECTIONS = {
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


def _pod_status(write: Write, node: str) -> Iterator[str]:
    new, old = write.new, write.old
    assert old is not None, "only what exists has a status to change"
    who = f'node "{node}"'
    if old["spec"].get("nodeName") != node:
        can = "can only update pod status for pods with spec.nodeName set to itself"
        yield f"{who} {can}"
    if (new["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):
        yield f"{who} cannot update labels through pod status"
    status, before = new.get("status") or {}, old.get("status") or {}
    for field, what in (
        ("resourceClaimStatuses", "resource claim statues"),
        ("extendedResourceClaimStatus", "extended resource claim status"),
    ):
        if (status.get(field) or None) != (before.get(field) or None):
            yield f"{who} cannot update {what}"


def _node(write: Write, node: str) -> Iterator[str]:
    name = write.info.name or write.new["metadata"].get("name", "")
    who = f'node "{node}" is not allowed to'
    if name != node:
        yield f'{who} modify node "{name}"'
    new, old = write.new, write.old or {}
    if write.operation == "CREATE":
        if (new.get("spec") or {}).get("configSource") is not None:
            yield f"{who} create pods with a non-nil configSource"
        if foreign := _foreign_labels(new, {}):
            yield f"{who} set the following labels: {foreign}"
    elif write.operation == "UPDATE":
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        source = spec.get("configSource")
        if source is not None and source != before.get("configSource"):
            yield f"{who} update configSource to a new non-nil configSource"
        if (spec.get("taints") or []) != (before.get("taints") or []):
            yield f"{who} modify taints"
        if _owners(new) != _owners(old):
            yield f"{who} modify ownerReferences"
        if foreign := _foreign_labels(new, old):
            yield f"is not allowed to modify labels: {foreign}"


def _owners(obj: Object) -> list[Object]:
    owners: list[Object] = obj["metadata"].get("ownerReferences") or []
    return owners


def _foreign_labels(new: Object, old: Object) -> str:
    """Changed labels that a kubelet may not set."""
    now: dict[str, str] = new["metadata"].get("labels") or {}
    before: dict[str, str] = (old.get("metadata") or {}).get("labels") or {}
    changed = {key for key, _ in now.items() ^ before.items()}
    return ", ".join(sorted(filter(is_foreign, changed)))


def is_foreign(label: str) -> bool:
    """Whether a kubelet may not set the label of its node."""
    prefix, slash, _ = label.partition("/")
    if not slash or not _within(prefix, *_CLUSTER_PREFIXES):
        return False
    if _within(prefix, _RESTRICTED):
        return True
    return label not in _OWN_LABELS and not _within(prefix, *_OWN_PREFIXES)


def _within(prefix: str, *domains: str) -> bool:
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def _claim(write: Write, node: str) -> Iterator[str]:
    if write.info.subresource != "status" or write.old is None:
        yield "may only update PVC status"
    elif _untouchable(write.new) != _untouchable(write.old):
        only = "status.quantity and status.conditions"
        yield f'node "{node}" is not allowed to update fields other than {only}'


def _untouchable(claim: Object) -> Object:
    meta = {
        key: value
        for key, value in claim["metadata"].items()
        if key not in ("resourceVersion", "managedFields")
    }
    status = claim.get("status") or {}
    kept = {key: value for key, value in status.items() if key not in _CLAIM_STATUS}
    return {**claim, "metadata": meta, "status": kept}


def _token(write: Write, node: str) -> Iterator[str]:
    if write.operation == "CREATE" and write.info.subresource == "token":
        yield from kubelet_tokens.problems(write, node, lambda name: _existing(write, "pods", name))


def _lease(write: Write, node: str) -> Iterator[str]:
    if write.info.namespace != LEASES:
        yield f'can only access leases in the "{LEASES}" system namespace'
    if write.new["metadata"].get("name") != node:
        yield "can only access node lease with the same name as the requesting node"


def _csi_node(write: Write, node: str) -> Iterator[str]:
    if write.new["metadata"].get("name") != node:
        yield "can only access CSINode with the same name as the requesting node"


def _slice(write: Write, node: str) -> Iterator[str]:
    verb = {"CREATE": "create", "DELETE": "delete"}.get(write.operation)
    if verb and (write.new.get("spec") or {}).get("nodeName") != node:
        yield f"can only {verb} ResourceSlice with the same NodeName as the requesting node"


def _certificate(write: Write, node: str) -> Iterator[str]:
    spec = write.new.get("spec") or {}
    if write.operation != "CREATE" or spec.get("signerName") not in _NODE_SIGNERS:
        return
    if common_name(spec.get("request") or "") != f"system:node:{node}":
        yield f"can only create a node CSR with CN=system:node:{node}"


_RULES = {
    ("", "pods"): _pod,
    ("", "nodes"): _node,
    ("", "persistentvolumeclaims"): _claim,
    ("", "serviceaccounts"): _token,
    ("coordination.k8s.io", "leases"): _lease,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("resource.k8s.io", "resourceslices"): _slice,
    ("certificates.k8s.io", "certificatesigningrequests"): _certificate,
}


_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def taint_new_node(write: Write) -> None:
    if not write.creates:
        return
    spec = write.new.setdefault("spec", {})
    present = spec.get("taints") or []
    if not any(all(each.get(key) == _NOT_READY[key] for key in _NOT_READY) for each in present):
        spec["taints"] = [*present, dict(_NOT_READY)]
