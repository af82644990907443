"""What kubelets may do: each only what the pods on its own node need. Pure over the state.

What a kubelet may write of its own is decided where the object is known, in admission.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec

from kvestigate.errors import InputError
from kvestigate.kube.field_selectors import parse_fields
from kvestigate.plane.authn.user import User
from kvestigate.plane.authz.reach import reaches
from kvestigate.plane.authz.rules import Rule
from kvestigate.plane.default_roles import default_roles
from kvestigate.plane.request import Asked
from kvestigate.plane.store.state import PlaneState

KUBELET, _GROUP = "system:node:", "system:nodes"
"""How the names of kubelets begin, and the group that they are in."""
LEASES = "kube-node-lease"
_OWN_VERBS = ("get", "create", "update", "patch", "delete")


class Opinion(NamedTuple):
    allowed: bool
    why: str = ""
    """Why not, if there is more to say than that."""


_YES, _NO = Opinion(True), Opinion(False)


def node_of(user: User) -> str | None:
    """The name of the node whose kubelet this is; None for everybody else."""
    if user.name.startswith(KUBELET) and _GROUP in user.groups:
        return user.name.removeprefix(KUBELET)
    return None


def opinion(state: PlaneState, user: User, asked: Asked) -> Opinion:
    """Whether this is a kubelet that may do so."""
    node = node_of(user)
    if node is None:
        return _NO
    if not node:
        return Opinion(False, f'unknown node for user "{user.name}"')
    decide = _DECIDED_BY_NODE.get((asked.group, asked.resource)) if asked.resource else None
    if decide is not None:
        return decide(state, node, asked)
    return _YES if any(rule.allows(asked) for rule in _for_all_nodes()) else _NO


@cache
def _for_all_nodes() -> tuple[Rule, ...]:
    for plural, _, role in default_roles():
        if plural == "clusterroles" and role["metadata"]["name"] == "system:node":
            return msgspec.convert(role["rules"], tuple[Rule, ...])
    raise AssertionError("a default role")


def _read(state: PlaneState, node: str, asked: Asked) -> Opinion:
    """Secrets and config maps: one at a time."""
    if asked.verb not in ("get", "list", "watch"):
        return Opinion(False, "can only read resources of this type")
    if asked.subresource:
        return Opinion(False, "cannot read subresource")
    if not asked.namespace:
        return Opinion(False, "can only read namespaced object of this type")
    return _related(state, node, asked)


def _get(state: PlaneState, node: str, asked: Asked) -> Opinion:
    if asked.verb != "get":
        return Opinion(False, "can only get individual resources of this type")
    if asked.subresource:
        return Opinion(False, "cannot get subresource")
    return _related(state, node, asked)


def _claim(state: PlaneState, node: str, asked: Asked) -> Opinion:
    if asked.subresource != "status":
        return _get(state, node, asked)
    if asked.verb not in ("update", "patch"):
        return Opinion(False, "can only get/update/patch this type")
    return _related(state, node, asked)


def _account(state: PlaneState, node: str, asked: Asked) -> Opinion:
    if asked.verb == "get" and not asked.subresource:
        return _read(state, node, asked)
    if asked.verb != "create" or not asked.name:
        return Opinion(False, "can only create tokens for individual service accounts")
    if asked.subresource != "token":
        return Opinion(False, "can only create token subresource of serviceaccount")
    return _related(state, node, asked)


def _lease(state: PlaneState, node: str, asked: Asked) -> Opinion:
    if asked.verb not in _OWN_VERBS:
        return Opinion(False, "can only get, create, update, patch, or delete a node lease")
    if asked.namespace != LEASES:
        return Opinion(False, f'can only access leases in the "{LEASES}" system namespace')
    return _of_its_name(node, asked, "node lease")


def _csi_node(state: PlaneState, node: str, asked: Asked) -> Opinion:
    if asked.subresource:
        return Opinion(False, "cannot authorize CSINode subresources")
    if asked.verb not in _OWN_VERBS:
        return Opinion(False, "can only get, create, update, patch, or delete a CSINode")
    return _of_its_name(node, asked, "CSINode")


def _of_its_name(node: str, asked: Asked, what: str) -> Opinion:
    """What is created has no name yet; admission looks at it."""
    if asked.verb == "create" or asked.name == node:
        return _YES
    return Opinion(False, f"can only access {what} with the same name as the requesting node")


def _slice(state: PlaneState, node: str, asked: Asked) -> Opinion:
    if asked.subresource:
        return Opinion(False, "cannot authorize ResourceSlice subresources")
    if asked.verb == "create":
        return _YES
    if asked.verb in ("get", "update", "patch", "delete"):
        return _related(state, node, asked)
    if asked.verb in ("watch", "list", "deletecollection"):
        if _selects(asked, "spec.nodeName", node):
            return _YES
        why = "can only list/watch/deletecollection resourceslices with nodeName field selector"
        return Opinion(False, why)
    verbs = "get, watch, list, create, update, patch, delete, deletecollection"
    return Opinion(False, f"only the following verbs are allowed for a ResourceSlice: {verbs}")


def _node(state: PlaneState, node: str, asked: Asked) -> Opinion:
    if asked.verb in ("update", "patch") and asked.subresource in ("", "status"):
        return _YES
    if asked.subresource:
        return _NO
    if asked.verb == "create":
        return _YES
    if asked.verb not in ("get", "list", "watch"):
        return _NO
    if asked.name == node:
        return _YES
    what = f"'{asked.name}'" if asked.name else "all nodes"
    return Opinion(False, f"node '{node}' cannot read {what}, only its own Node object")


def _pod(state: PlaneState, node: str, asked: Asked) -> Opinion:
    does = (asked.subresource, asked.verb)
    if does in _POD_WRITES:
        return _YES
    if does == ("", "get"):
        return _related(state, node, asked)
    if does not in (("", "list"), ("", "watch")):
        return _NO
    if _selects(asked, "spec.nodeName", node):
        return _YES
    if asked.name:
        return _related(state, node, asked)
    return Opinion(False, "can only list/watch pods with spec.nodeName field selector")


_POD_WRITES = (
    ("", "create"),
    ("", "delete"),
    ("status", "update"),
    ("status", "patch"),
    ("eviction", "create"),
)


def _related(state: PlaneState, node: str, asked: Asked) -> Opinion:
    if not asked.name:
        return Opinion(False, "No Object name found")
    if reaches(state, node, asked.resource, asked.namespace, asked.name):
        return _YES
    return Opinion(False, f"no relationship found between node '{node}' and this object")


def _selects(asked: Asked, path: str, value: str) -> bool:
    try:
        terms = parse_fields(asked.params.get("fieldSelector", "")).terms
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
