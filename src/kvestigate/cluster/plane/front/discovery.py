"""Discovery: which groups, versions and resources a plane serves. Pure.

Clients can read it in two forms: a document for each path, which every client knows, or one
document with everything (aggregated discovery), which kubectl prefers. Groups, versions and
resources are in the order of `Types`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.request import negotiate
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.response.answer import Document
from kvestigate.errors import NotFound
from kvestigate.http.message import Request, Response
from kvestigate.kube import facts

AGGREGATED = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}
_AGGREGATED_MEDIA = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Discovery:
    """The discovery documents of one set of types."""

    def __init__(self, types: Types) -> None:
        self._groups: dict[str, dict[str, list[Kind]]] = {}
        for kind in types:
            versions = self._groups.setdefault(kind.resource.group, {})
            versions.setdefault(kind.resource.version, []).append(kind)

    @property
    def paths(self) -> list[str]:
        """The paths of the documents: `/api/v1`, `/apis`, `/apis/apps`, `/apis/apps/v1`."""
        paths = ["/api", "/api/v1", "/apis", "/apis/"]
        for group, versions in self._groups.items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return paths

    def respond(self, path: str, request: Request) -> Response | None:
        """The document at a path; None if the path is not one of discovery's."""
        match path.strip("/").split("/"):
            case ["api"]:
                if _wants_aggregated(request):
                    return self._core.answer(request, "public")
                return _plain(_versions(request), request)
            case ["apis"]:
                if _wants_aggregated(request):
                    return self._named.answer(request, "public")
                return _plain(self._group_list(), request)
            case ["apis", group] if group in self._groups:
                value = {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
                return _plain(value, request)
            case ["api", version]:
                return _plain(self._resource_list("", version), request)
            case ["apis", group, version] if group in self._groups:
                return _plain(self._resource_list(group, version), request)
        return None

    @cached_property
    def _core(self) -> Document:
        return self._aggregated([""])

    @cached_property
    def _named(self) -> Document:
        return self._aggregated([group for group in self._groups if group])

    # -- a document for each path --------------------------------------------------------

    def _group_list(self) -> dict[str, Any]:
        groups = [self._group(group) for group in self._groups if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _group(self, name: str) -> dict[str, Any]:
        versions = [
            {"groupVersion": f"{name}/{version}", "version": version}
            for version in self._groups[name]
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _resource_list(self, group: str, version: str) -> dict[str, Any]:
        kinds = self._groups[group].get(version)
        if kinds is None:
            raise NotFound("the server could not find the requested resource", details={})
        resources = []
        for kind in kinds:
            resources += [_resource(kind), *(_subresource(kind, sub) for sub in subresources(kind))]
        # As kube-apiserver does: every list but the core group's has an apiVersion.
        head = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
        return {**head, "groupVersion": kinds[0].resource.api_version, "resources": resources}

    # -- one document with everything ----------------------------------------------------

    def _aggregated(self, groups: list[str]) -> Document:
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [_aggregated_resource(kind) for kind in kinds],
                        "freshness": "Current",
                    }
                    for version, kinds in self._groups[group].items()
                ],
            }
            for group in groups
        ]
        value = {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }
        return Document(answer.encode(value), _AGGREGATED_MEDIA)


T = TypeVar("T")


def once_per_types(make: Callable[[Types], T]) -> Callable[[Types], T]:
    """The same function, called once for each set of types: many planes share their types."""
    made: WeakKeyDictionary[Types, T] = WeakKeyDictionary()

    def made_once(types: Types) -> T:
        if types not in made:
            made[types] = make(types)
        return made[types]

    return made_once


of = once_per_types(Discovery)


def _wants_aggregated(request: Request) -> bool:
    """Whether the first media type of Accept that can be served is aggregated discovery."""
    accept = request.headers.get("accept") or "*/*"
    for media, options in negotiate.alternatives(accept):
        if media not in negotiate.JSON and media != negotiate.YAML:
            continue
        if "as" not in options:
            return False
        if media in negotiate.JSON and AGGREGATED.items() <= options.items():
            return True
    negotiate.negotiate(accept)
    raise negotiate.unwanted()


def _plain(value: dict[str, Any], request: Request) -> Response:
    form = negotiate.negotiate(request.headers.get("accept"))
    if form.form is not negotiate.Form.OBJECT:
        raise negotiate.unwanted()
    response = answer.json_value(value)
    return answer.as_yaml(response) if form.yaml else response


def _versions(request: Request) -> dict[str, Any]:
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host")}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}


def _resource(kind: Kind) -> dict[str, Any]:
    resource = kind.resource
    entry = {
        "name": resource.plural,
        "singularName": resource.singular_name,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
        **_nicknames(kind),
    }
    if "watch" in resource.verbs:
        entry["storageVersionHash"] = _storage_hash(kind)
    return entry


def _storage_hash(kind: Kind) -> str:
    """A hash of the storage version; it tells migrators when that version changes."""
    stored = kind.storage.resource
    name = f"{stored.group}/{stored.version}/{stored.kind}"
    return base64.b64encode(hashlib.sha256(name.encode()).digest()[:8]).decode()


def _subresource(kind: Kind, sub: facts.Subresource) -> dict[str, Any]:
    resource = kind.resource
    entry: dict[str, Any] = {
        "name": f"{resource.plural}/{sub.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if (sub.group, sub.version) != (resource.group, resource.version):
        entry |= {"group": sub.group, "version": sub.version}
    return {**entry, "kind": sub.kind, "verbs": sub.verbs}


def _aggregated_resource(kind: Kind) -> dict[str, Any]:
    resource = kind.resource
    entry = {
        "resource": resource.plural,
        "responseKind": _response_kind(kind, resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular_name,
        "verbs": resource.verbs,
        **_nicknames(kind),
    }
    listed = [
        {
            "subresource": sub.name,
            "responseKind": _response_kind(kind, sub.group, sub.version, sub.kind),
            "verbs": sub.verbs,
        }
        for sub in subresources(kind)
    ]
    return {**entry, "subresources": listed} if listed else entry


def _response_kind(kind: Kind, group: str, version: str, name: str) -> dict[str, str]:
    """Built-in kinds leave out the group and version if they are those of the document."""
    resource = kind.resource
    if kind.type is not None and (group, version) == (resource.group, resource.version):
        group = version = ""
    return {"group": group, "version": version, "kind": name}


def _nicknames(kind: Kind) -> dict[str, tuple[str, ...]]:
    fields = {"shortNames": kind.resource.short_names, "categories": kind.resource.categories}
    return {field: names for field, names in fields.items() if names}


def subresources(kind: Kind) -> tuple[facts.Subresource, ...]:
    """The subresources of a kind, with the kinds of their objects."""
    resource = kind.resource
    if kind.type is None:
        return tuple(_custom_subresource(kind, name) for name in resource.subresources)
    return _routes()[resource.group, resource.version, resource.plural].subresources


@cache
def _routes() -> dict[tuple[str, str, str], facts.Route]:
    return {(route.group, route.version, route.plural): route for route in facts.routes()}


def _custom_subresource(kind: Kind, name: str) -> facts.Subresource:
    resource, verbs = kind.resource, ("get", "patch", "update")
    if name == "scale":
        return facts.Subresource(name, "autoscaling", "v1", "Scale", verbs)
    return facts.Subresource(name, resource.group, resource.version, resource.kind, verbs)
