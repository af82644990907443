"""The variables of expressions in admission policies, and their types. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kvestigate.kube.cel import types
from kvestigate.kube.cel.library.authorization import Authorizer, ResourceCheck
from kvestigate.kube.cel.types import DYN, STRING, Type, object_of

_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)


_STRINGS = types.list_of(STRING)
_KIND = object_of("kubernetes.GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE = object_of(
    "kubernetes.GroupVersionResource", group=STRING, version=STRING, resource=STRING
)
_USER = object_of(
    "kubernetes.UserInfo",
    username=STRING,
    uid=STRING,
    groups=_STRINGS,
    extra=types.map_of(STRING, _STRINGS),
)
REQUEST = object_of(
    "kubernetes.AdmissionRequest",
    kind=_KIND,
    resource=_RESOURCE,
    subResource=STRING,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_USER,
    dryRun=types.BOOL,
    options=DYN,
)
_NAMESPACE_METADATA = {
    **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), STRING),
    **{name: types.map_of(STRING, STRING) for name in ("labels", "annotations")},
    **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), types.INT),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), types.TIMESTAMP),
    "finalizers": _STRINGS,
}
NAMESPACE = object_of(
    "kubernetes.Namespace",
    metadata=object_of("kubernetes.NamespaceMetadata", **_NAMESPACE_METADATA),
    spec=object_of("kubernetes.NamespaceSpec", finalizers=_STRINGS),
    status=object_of("kubernetes.NamespaceStatus", phase=STRING),
)

_ALWAYS: dict[str, Type] = {
    "object": DYN,
    "oldObject": DYN,
    "request": REQUEST,
    "namespaceObject": NAMESPACE,
}
_AUTHORIZER: dict[str, Type] = {
    "authorizer": Type(Authorizer.TYPE),
    "authorizer.requestResource": Type(ResourceCheck.TYPE),
}


def scope(
    *,
    has_params: bool,
    has_authorizer: bool = True,
    variables: Mapping[str, Type] | None = None,
) -> dict[str, Type]:
    """The type of each variable that an expression may use."""
    names = dict(_ALWAYS)
    if has_params:
        names["params"] = DYN
    if has_authorizer:
        names |= _AUTHORIZER
    if variables is not None:
        names["variables"] = object_of("kubernetes.variables", **variables)
    return names


def is_identifier(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None
