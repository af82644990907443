"""The operations on the paths of a kind, independent of the version of OpenAPI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvestigate.cluster.plane.front.discovery import subresources
from kvestigate.cluster.plane.front.openapi.schemas import META, custom_name
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.kube import facts

PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
CUSTOM_PATCHES = PATCHES[:3]

_METHODS = {
    "list": "get",
    "create": "post",
    "deletecollection": "delete",
    "get": "get",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
}
_WORDS = {"get": "read", "update": "replace", "deletecollection": "delete"}
_ON_COLLECTION = ("list", "create", "deletecollection")
_ON_OBJECT = ("get", "update", "patch", "delete")

_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_SELECT = ("continue", "fieldSelector", "labelSelector", "limit")
_AT = ("resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "list": ("allowWatchBookmarks", *_SELECT, *_AT, "watch"),
    "create": _WRITE,
    "deletecollection": (*_SELECT, *_AT, *_DELETE),
    "update": _WRITE,
    "patch": (*_WRITE, "force"),
    "delete": _DELETE,
}
_BOOLEANS = ("allowWatchBookmarks", "force", "orphanDependents", "sendInitialEvents", "watch")
_INTEGERS = ("gracePeriodSeconds", "limit", "timeoutSeconds")


def parameter_type(name: str) -> str:
    """The type of a query parameter."""
    return "boolean" if name in _BOOLEANS else "integer" if name in _INTEGERS else "string"


@dataclass(frozen=True, slots=True)
class Operation:
    path: str
    method: str
    id: str
    """`createAppsV1NamespacedDeployment`: its name in generated clients."""
    action: str
    """The value of `x-kubernetes-action`."""
    gvk: dict[str, str]
    parameters: tuple[str, ...] = ()
    """The names of the query parameters."""
    request_schema: str = ""
    """The schema of the request body; empty if there is no body or it has no schema."""
    response_schema: str = ""
    consumes: tuple[str, ...] = ("*/*",)

    @property
    def variables(self) -> list[str]:
        """The path parameters."""
        return [name for name in ("name", "namespace") if f"{{{name}}}" in self.path]


def of_kind(kind: Kind) -> Iterator[Operation]:
    """Every operation on the objects of a kind."""
    resource = kind.resource
    schema = custom_name(kind) if kind.type is None else kind.type.name
    yield from _list_all_namespaces(kind, schema)
    for verb in (*_ON_COLLECTION, *_ON_OBJECT):
        if verb in resource.verbs:
            yield _operation(kind, verb, schema)
    for sub in subresources(kind):
        definition = facts.for_kind(sub.group, sub.version, sub.kind)
        for verb in sub.verbs:
            # Streams have no schema: their kind is that of the query parameters.
            if sub.kind.endswith("Options"):
                yield _connection(kind, verb, sub)
            else:
                yield _operation(kind, verb, definition.name if definition else schema, sub)


def _list_all_namespaces(kind: Kind, schema: str) -> Iterator[Operation]:
    resource = kind.resource
    if resource.namespaced and "list" in resource.verbs:
        yield Operation(
            f"{_root(kind)}/{resource.plural}",
            "get",
            f"list{_group(kind)}{resource.kind}ForAllNamespaces",
            "list",
            _gvk(resource.group, resource.version, resource.kind),
            _PARAMETERS["list"],
            response_schema=f"{schema}List",
        )


def _operation(
    kind: Kind, verb: str, schema: str, sub: facts.Subresource | None = None
) -> Operation:
    resource = kind.resource
    method = _METHODS[verb]
    many = "Collection" if verb == "deletecollection" else ""
    on_object = sub is not None or verb in _ON_OBJECT
    patches = CUSTOM_PATCHES if kind.type is None else PATCHES
    return Operation(
        _path(kind, on_object, sub),
        method,
        f"{_WORDS.get(verb, verb)}{_group(kind)}{many}{_scoped(kind)}{_title(sub)}",
        verb if verb in ("list", "deletecollection") else method,
        _gvk(sub.group, sub.version, sub.kind)
        if sub
        else _gvk(resource.group, resource.version, resource.kind),
        _PARAMETERS.get(verb, ()),
        request_schema=_request_schema(verb, schema),
        response_schema=_response_schema(verb, schema),
        consumes=patches if verb == "patch" else ("*/*",),
    )


def _connection(kind: Kind, verb: str, sub: facts.Subresource) -> Operation:
    method = _METHODS[verb]
    return Operation(
        _path(kind, True, sub),
        method,
        f"connect{_group(kind)}{method.title()}{_scoped(kind)}{_title(sub)}",
        "connect",
        _gvk(sub.group, sub.version, sub.kind),
    )


def _request_schema(verb: str, schema: str) -> str:
    if verb in ("delete", "deletecollection"):
        return f"{META}.DeleteOptions"
    return {"patch": f"{META}.Patch", "create": schema, "update": schema}.get(verb, "")


def _response_schema(verb: str, schema: str) -> str:
    if verb in ("delete", "deletecollection"):
        return f"{META}.Status"
    return f"{schema}List" if verb == "list" else schema


def _root(kind: Kind) -> str:
    resource = kind.resource
    return f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"


def _path(kind: Kind, on_object: bool, sub: facts.Subresource | None) -> str:
    resource = kind.resource
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    path = f"{_root(kind)}{scope}/{resource.plural}"
    return f"{path}{'/{name}' if on_object else ''}{f'/{sub.name}' if sub else ''}"


def _group(kind: Kind) -> str:
    """`AppsV1`, `RbacAuthorizationV1`, `CoreV1`"""
    group = kind.resource.group.removesuffix(".k8s.io") or "core"
    title = "".join(word.capitalize() for word in group.replace("-", ".").split("."))
    return title + kind.resource.version.capitalize()


def _scoped(kind: Kind) -> str:
    return f"{'Namespaced' if kind.resource.namespaced else ''}{kind.resource.kind}"


def _title(sub: facts.Subresource | None) -> str:
    return sub.name.capitalize() if sub else ""


def _gvk(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}
