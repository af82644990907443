"""The variables of expressions in admission policies, and their types. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kvestigate.kube.cel import types
from kvestigate.kube.cel.library.authorization import Authorizer, ResourceCheck
from kvestigate.kube.cel.types import DYN, STRING, Field, Type

_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)


class _Fields(dict[str, Field]):
    """The fields of a type; hashable by identity, as there is one for each type."""

    def __hash__(self) -> int:  # type: ignore[override] # dicts have none
        return id(self)


def _object(name: str, /, **fields: Type) -> Type:
    return Type(name, (), _Fields({key: Field(key, type_) for key, type_ in fields.items()}))


_STRINGS = types.list_of(STRING)
_KIND = _object("kubernetes.GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE = _object(
    "kubernetes.GroupVersionResource", group=STRING, version=STRING, resource=STRING
)
_USER = _object(
    "kubernetes.UserInfo",
    username=STRING,
    uid=STRING,
    groups=_STRINGS,
    extra=types.map_of(STRING, _STRINGS),
)
REQUEST = _object(
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
NAMESPACE = _object(
    "kubernetes.Namespace",
    metadata=_object("kubernetes.NamespaceMetadata", **_NAMESPACE_METADATA),
    spec=_object("kubernetes.NamespaceSpec", finalizers=_STRINGS),
    status=_object("kubernetes.NamespaceStatus", phase=STRING),
)
DEVICE = _object(
    "kubernetes.DRADevice",
    driver=STRING,
    allowMultipleAllocations=types.BOOL,
    attributes=types.map_of(STRING, types.map_of(STRING, DYN)),
    capacity=types.map_of(STRING, types.map_of(STRING, Type("kubernetes.Quantity"))),
)
"""What the selectors of claims and classes are put to."""

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
        names["variables"] = _object("kubernetes.variables", **variables)
    return names


def is_identifier(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None
