"""The node authorizer: kubelets may read what the pods on their own node need. Pure.

The authorizer sees no request bodies. What a kubelet may write to its own objects is decided in
admission (NodeRestriction), where the object is known.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec

from kvestigate.cluster.plane.access.authz.default_roles import default_roles
from kvestigate.cluster.plane.access.authz.reach import reaches
from kvestigate.cluster.plane.access.authz.rules import Rule
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import InputError
from kvestigate.kube.field_selectors import parse_fields

KUBELET, NODES = "system:node:", "system:nodes"
"""The prefix of the user names of kubelets, and their group."""
LEASES = "kube-node-lease"
_OWN_VERBS = ("get", "create", "update", "patch", "delete")


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""
    """Why the request is denied; empty if the node authorizer has no reason of its own."""


_YES, _NO = Decision(True), Decision(False)


def node_of(user: User) -> str | None:
    """The node of the kubelet that a user is; None for all other users."""
    if user.name.startswith(KUBELET) and NODES in user.groups:
        return user.name.removeprefix(KUBELET)
    return None


def authorize(state: PlaneState, user: User, info: RequestInfo) -> Decision:
    """Whether the user is a kubelet that may make the request."""
    node = node_of(user)
    if node is None:
        return _NO
    if not node:
        return Decision(False, f'unknown node for user "{user.name}"')
    decide = _DECIDED_BY_NODE.get((info.group, info.resource)) if info.resource else None
    if decide is not None:
        return decide(state, node, info)
    return _YES if any(rule.allows(info) for rule in _for_all_nodes()) else _NO


@cache
def _for_all_nodes() -> tuple[Rule, ...]:
    for plural, _, role in default_roles():
        if plural == "clusterroles" and role["metadata"]["name"] == "system:node":
            return msgspec.convert(role["rules"], tuple[Rule, ...])
    raise AssertionError("a default role")


def _read(state: PlaneState, node: str, info: RequestInfo) -> Decision:
    """Secrets and config maps: one object at a time."""
    if info.verb not in ("get", "list", "watch"):
        return Decision(False, "can only read resources of this type")
    if info.subresource:
        return Decision(False, "cannot read subresource")
    if not info.namespace:
        return Decision(False, "can only read namespaced object of this type")
    return _related(state, node, info)


def _get(state: PlaneState, node: str, info: RequestInfo) -> Decision:
    if info.verb != "get":
        return Decision(False, "can only get individual resources of this type")
    if info.subresource:
        return Decision(False, "cannot get subresource")
    return _related(state, node, info)


def _claim(state: PlaneState, node: str, info: RequestInfo) -> Decision:
    if info.subresource != "status":
        return _get(state, node, info)
    if info.verb not in ("update", "patch"):
        return Decision(False, "can only get/update/patch this type")
    return _related(state, node, info)


def _account(state: PlaneState, node: str, info: RequestInfo) -> Decision:
    if info.verb == "get" and not info.subresource:
        return _read(state, node, info)
    if info.verb != "create" or not info.name:
        return Decision(False, "can only create tokens for individual service accounts")
    if info.subresource != "token":
        return Decision(False, "can only create token subresource of serviceaccount")
    return _related(state, node, info)


def _lease(state: PlaneState, node: str, info: RequestInfo) -> Decision:
    if info.verb not in _OWN_VERBS:
        return Decision(False, "can only get, create, update, patch, or delete a node lease")
    if info.namespace != LEASES:
        return Decision(False, f'can only access leases in the "{LEASES}" system namespace')
    return _named_like_node(node, info, "node lease")


def _csi_node(state: PlaneState, node: str, info: RequestInfo) -> Decision:
    if info.subresource:
        return Decision(False, "cannot authorize CSINode subresources")
    if info.verb not in _OWN_VERBS:
        return Decision(False, "can only get, create, update, patch, or delete a CSINode")
    return _named_like_node(node, info, "CSINode")


def _named_like_node(node: str, info: RequestInfo, what: str) -> Decision:
    """Objects named like the node; the name of a new object is checked in admission."""
    if info.verb == "create" or info.name == node:
        return _YES
    return Decision(False, f"can only access {what} with the same name as the requesting node")


def _slice(state: PlaneState, node: str, info: RequestInfo) -> Decision:
    if info.subresource:
        return Decision(False, "cannot authorize ResourceSlice subresources")
    if info.verb == "create":
        return _YES
    if info.verb in ("get", "update", "patch", "delete"):
        return _related(state, node, info)
    if info.verb in ("watch", "list", "deletecollection"):
        if _selects(info, "spec.nodeName", node):
            return _YES
        why = "can only list/watch/deletecollection resourceslices with nodeName field selector"
        return Decision(False, why)
    verbs = "get, watch, list, create, update, patch, delete, deletecollection"
    return Decision(False, f"only the following verbs are allowed for a ResourceSlice: {verbs}")


def _node(state: PlaneState, node: str, info: RequestInfo) -> Decision:
    if info.verb in ("update", "patch") and info.subresource in ("", "status"):
        return _YES
    if info.subresource:
        return _NO
    if info.verb == "create":
        return _YES
    if info.verb not in ("get", "list", "watch"):
        return _NO
    if info.name == node:
        return _YES
    what = f"'{info.name}'" if info.name else "all nodes"
    return Decision(False, f"node '{node}' cannot read {what}, only its own Node object")


def _pod(state: PlaneState, node: str, info: RequestInfo) -> Decision:
    request = (info.subresource, info.verb)
    if request in _POD_WRITES:
        return _YES
    if request == ("", "get"):
        return _related(state, node, info)
    if request not in (("", "list"), ("", "watch")):
        return _NO
    if _selects(info, "spec.nodeName", node):
        return _YES
    if info.name:
        return _related(state, node, info)
    return Decision(False, "can only list/watch pods with spec.nodeName field selector")


_POD_WRITES = (
    ("", "create"),
    ("", "delete"),
    ("status", "update"),
    ("status", "patch"),
    ("eviction", "create"),
)


def _related(state: PlaneState, node: str, info: RequestInfo) -> Decision:
    if not info.name:
        return Decision(False, "No Object name found")
    if reaches(state, node, info.resource, info.namespace, info.name):
        return _YES
    return Decision(False, f"no relationship found between node '{node}' and this object")


def _selects(info: RequestInfo, path: str, value: str) -> bool:
    try:
        terms = parse_fields(info.params.get("fieldSelector", "")).terms
    except InputError:
        return False
    return any(term.path == path and term.value == value and not term.negated for term in terms)


_DECIDED_BY_NODE = {
    ("", "secrets"): _read,
    ("", "configmaps"): _read,
    ("", "persistentvolumeclaims"): _claim,
    ("", "persistentvolumes"): _get,
    ("resource.k8s.io", "resourceclaims"): _get,
    ("storage.k8s.io", "volumeattachments"): _get,
    ("", "serviceaccounts"): _account,
    ("coordination.k8s.io", "leases"): _lease,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("resource.k8s.io", "resourceslices"): _slice,
    ("", "nodes"): _node,
    ("", "pods"): _pod,
}
