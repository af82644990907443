"""Which subresources have which verbs. One list, no import side effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache

from kvestigate.cluster.plane.kinds.custom import jsonpath
from kvestigate.cluster.plane.kinds.custom.kind import CustomKind
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.verbs import reviews
from kvestigate.cluster.plane.verbs.get import get
from kvestigate.cluster.plane.verbs.patch import patch
from kvestigate.cluster.plane.verbs.subresources import scale
from kvestigate.cluster.plane.verbs.subresources.binding import (
    create_binding,
    create_legacy_binding,
)
from kvestigate.cluster.plane.verbs.subresources.connecting import admit_connection
from kvestigate.cluster.plane.verbs.subresources.eviction import create_eviction
from kvestigate.cluster.plane.verbs.subresources.log import read_log
from kvestigate.cluster.plane.verbs.subresources.proxy import proxy_node, proxy_pod, proxy_service
from kvestigate.cluster.plane.verbs.subresources.streams import attach_to, exec_in, forward_ports
from kvestigate.cluster.plane.verbs.subresources.token import create_token
from kvestigate.cluster.plane.verbs.update import update
from kvestigate.http.message import Response, Upgrade

Verb = Callable[[Call], Awaitable[Response | Upgrade]]
Verbs = Mapping[str, Verb]


def _admitted(verb: Verb) -> Verb:
    """The same verb after admission of the CONNECT."""

    async def admitted(call: Call) -> Response | Upgrade:
        await admit_connection(call)
        return await verb(call)

    return admitted


def _connect(verb: Verb) -> Verbs:
    """A stream may be opened with GET or POST."""
    return dict.fromkeys(("get", "create"), _admitted(verb))


def _any_method(verb: Verb) -> Verbs:
    return dict.fromkeys(_METHODS, _admitted(verb))


PART: Verbs = {"get": get, "update": update, "patch": patch}
"""Of subresources that are the object itself: its kind decides which fields may change."""

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
_METHODS = ("get", "watch", "create", "update", "patch", "delete", "options")

SUBRESOURCES: dict[tuple[str, str, str], Verbs] = {
    ("", "namespaces", "finalize"): {"update": update},
    ("", "nodes", "proxy"): _any_method(proxy_node),
    ("", "pods", "attach"): _connect(attach_to),
    ("", "pods", "binding"): {"create": create_binding},
    ("", "pods", "ephemeralcontainers"): PART,
    ("", "pods", "eviction"): {"create": create_eviction},
    ("", "pods", "exec"): _connect(exec_in),
    ("", "pods", "log"): {"get": read_log},
    ("", "pods", "portforward"): _connect(forward_ports),
    ("", "pods", "proxy"): _any_method(proxy_pod),
    ("", "pods", "resize"): PART,
    ("", "replicationcontrollers", "scale"): scale.verbs(scale.REPLICATION_CONTROLLER),
    ("", "serviceaccounts", "token"): {"create": create_token},
    ("", "services", "proxy"): _any_method(proxy_service),
    ("apps", "deployments", "scale"): scale.verbs(scale.WORKLOAD),
    ("apps", "replicasets", "scale"): scale.verbs(scale.WORKLOAD),
    ("apps", "statefulsets", "scale"): scale.verbs(scale.WORKLOAD),
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): PART,
}
"""(group, plural, subresource) -> verb -> function"""


def verbs_of(kind: Kind, subresource: str) -> Verbs:
    """The verbs of a kind's subresource; empty if it has no such subresource."""
    if subresource == "scale" and isinstance(kind, CustomKind):
        return _scale_of(kind)
    return SUBRESOURCES.get((*kind.key, subresource), {})


@lru_cache(maxsize=4096)
def _scale_of(kind: CustomKind) -> Verbs:
    """The scale subresource of a custom kind, with the paths of its definition."""
    selector = jsonpath.names(kind.scale.get("labelSelectorPath") or "")
    return scale.verbs(
        scale.Scaling(
            lambda obj: str(scale.read(obj, selector) or "") if selector else "",
            jsonpath.names(kind.scale["specReplicasPath"]),
            jsonpath.names(kind.scale["statusReplicasPath"]),
            required=kind.scale["specReplicasPath"],
        )
    )


VIRTUAL: dict[tuple[str, str], Verbs] = {
    ("", "bindings"): {"create": create_legacy_binding},
    (_AUTHENTICATION, "selfsubjectreviews"): {"create": reviews.self_subject_review},
    (_AUTHENTICATION, "tokenreviews"): {"create": reviews.token_review},
    (_AUTHORIZATION, "localsubjectaccessreviews"): {"create": reviews.local_subject_access_review},
    (_AUTHORIZATION, "selfsubjectaccessreviews"): {"create": reviews.self_subject_access_review},
    (_AUTHORIZATION, "selfsubjectrulesreviews"): {"create": reviews.self_subject_rules_review},
    (_AUTHORIZATION, "subjectaccessreviews"): {"create": reviews.subject_access_review},
}
"""(group, plural) -> verbs of resources that are answered but never stored."""

PASSED_THROUGH = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources that a kubelet or a pod answers."""


def has_table(kind: Kind, subresource: str) -> bool:
    """Whether clients may have the objects as a Table: not if they are answered and not stored."""
    if subresource:
        return subresource not in ("binding", "eviction", "token")
    return kind.stored.key not in VIRTUAL
