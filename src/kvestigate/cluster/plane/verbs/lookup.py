"""From a parsed request to the kind that it addresses and the function that answers it. Pure.

kube-apiserver installs a route for every path and method that it serves. We keep no table of
routes: a plane may gain or lose kinds with every write, so both are looked up in the plane's
types for each request. What clients can tell apart is which error they get:

- 404 in plain text: no API group, or no custom resource, is at the path (`find_kind`);
- 404 as a Status: the group exists, the resource or subresource does not (`find_verb`);
- 405: the path exists, but not for this method (`find_verb`).

Kinds of aggregated APIs (`metrics.k8s.io`) are not in the plane's store. The code that assembles a
server registers them (`Aggregation`). A plane serves them while it has their APIService, behind the
same authentication and authorization as everything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kvestigate import errors
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.model.request_info import ROOT, RequestInfo
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.verbs.create import create
from kvestigate.cluster.plane.verbs.delete import delete, delete_collection
from kvestigate.cluster.plane.verbs.get import get
from kvestigate.cluster.plane.verbs.list import list_
from kvestigate.cluster.plane.verbs.patch import patch
from kvestigate.cluster.plane.verbs.subresources.registry import VIRTUAL, Verb, Verbs, verbs_of
from kvestigate.cluster.plane.verbs.update import update
from kvestigate.cluster.plane.verbs.watch import watch
from kvestigate.kube.resources import Resource

VERBS: dict[str, Verb] = {
    "get": get,
    "list": list_,
    "watch": watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}


def find_kind(served: Types, info: RequestInfo) -> Kind | None:
    """The kind that a request addresses; None if the server has no API at the path."""
    kind = served.get(info.group, info.version, info.resource)
    if kind is None:
        # Custom resources are served one by one, built-in ones as a group.
        built_in = (each.resource.group for each in served if each.type is not None)
        if info.group in built_in:
            raise _not_found()
        return None
    if kind.type is None and not _scope_matches(kind.resource, info):
        return None
    return kind


def _scope_matches(custom: Resource, info: RequestInfo) -> bool:
    """Whether the path has a namespace if and only if the custom resource is namespaced."""
    if info.namespace:
        return custom.namespaced
    return not custom.namespaced or info.verb in ("list", "watch")


def find_verb(kind: Kind, info: RequestInfo, aggregated: Verbs | None) -> Verb:
    """The function that answers a request for a kind; ApiError if there is none.

    `aggregated` has the verbs of a kind whose objects are not in the plane's store.
    """
    resource = kind.resource
    if not _path_exists(resource, info):
        raise _not_found()
    verbs: Verbs
    if not _verb_fits_path(resource, info):
        verbs = {}
    elif info.subresource and info.subresource != "status":
        verbs = verbs_of(kind, info.subresource)
    elif aggregated is not None:
        verbs = aggregated
    elif kind.stored.key in VIRTUAL:
        verbs = VIRTUAL[kind.stored.key]
    else:
        allowed = resource.verbs if not info.subresource else ("get", "update", "patch")
        verbs = VERBS if info.verb in allowed else {}
    verb = verbs.get(info.verb)
    if verb is None or (info.verb == "watch" and info.method not in ("GET", "HEAD")):
        raise _not_allowed(kind, info)
    return verb


def _path_exists(resource: Resource, info: RequestInfo) -> bool:
    if info.rest and info.subresource != "proxy":
        return False
    if info.subresource and (info.verb == "watch" or info.subresource not in resource.subresources):
        return False
    if resource.namespaced:
        collection = info.verb in ("list", "watch", "deletecollection")
        return bool(info.namespace) or not info.name or collection
    # The path of a Namespace object is also that of the namespace.
    return not info.namespace or (resource.plural == "namespaces" and not resource.group)


def _verb_fits_path(resource: Resource, info: RequestInfo) -> bool:
    """Whether the verb is for a path of this form: of one object, or of a collection."""
    if info.verb in ("update", "patch"):
        return bool(info.name)
    if info.verb == "create" and info.name and not info.subresource:
        return False
    all_namespaces = resource.namespaced and not info.namespace
    return not all_namespaces or info.verb in ("list", "watch")


def _not_found() -> errors.NotFound:
    return errors.NotFound("the server could not find the requested resource", details={})


def _not_allowed(kind: Kind, info: RequestInfo) -> errors.ApiError:
    if kind.type is not None:
        return errors.MethodNotAllowed(
            "the server does not allow this method on the requested resource", details={}
        )
    if not info.name and info.verb in ("update", "patch"):
        return errors.BadRequest("name must be provided")
    resource = kind.resource
    return errors.MethodNotAllowed(
        f'{info.verb} is not supported on resources of kind "{resource.qualified}"',
        details={"group": resource.group, "kind": resource.plural},
    )


API_SERVICES = ("apiregistration.k8s.io", "apiservices")


@dataclass(frozen=True, slots=True, eq=False)
class Aggregated:
    """One kind of an aggregated API."""

    kind: Kind
    verbs: Verbs
    plane: str = ROOT
    """The only plane that serves it."""

    @property
    def service(self) -> str:
        """The name of its APIService: `v1beta1.metrics.k8s.io`."""
        return f"{self.kind.resource.version}.{self.kind.resource.group}"


class Aggregation:
    """The aggregated kinds of a server."""

    def __init__(self) -> None:
        self._served: list[Aggregated] = []
        self._extended: WeakKeyDictionary[Types, dict[tuple[Aggregated, ...], Types]]
        self._extended = WeakKeyDictionary()
        """Discovery and OpenAPI documents are kept by Types, so equal ones must be the same."""

    def serve(self, added: Iterable[Aggregated]) -> None:
        self._served += added

    def verbs_of(self, kind: Kind) -> Verbs | None:
        """The verbs of an aggregated kind; None for kinds in the plane's store."""
        return next((served.verbs for served in self._served if served.kind is kind), None)

    def types(self, plane: Plane) -> Types:
        """The types of the plane, followed by those of its aggregated APIs."""
        own = types.of(plane.state)
        aggregated = tuple(
            served
            for served in self._served
            if served.plane == plane.name
            and plane.state.get(API_SERVICES, "", served.service) is not None
        )
        if not aggregated:
            return own
        extended = self._extended.setdefault(own, {})
        if aggregated not in extended:
            extended[aggregated] = own.extended(served.kind for served in aggregated)
        return extended[aggregated]
