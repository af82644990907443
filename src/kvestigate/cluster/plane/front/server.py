"""The API server: from a request to an answer, through the filters that guard every route."""

from __future__ import annotations

import logging
import time
from functools import lru_cache, partial
from random import Random
from typing import NamedTuple

from kvestigate import errors
from kvestigate.aio.clock import Clock, WallClock
from kvestigate.cluster.plane.access.authn.jwt import SigningKey
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.interface import Authenticator, Authorizer
from kvestigate.cluster.plane.egress.reach import Backends
from kvestigate.cluster.plane.front import issuer_discovery, metrics, routes
from kvestigate.cluster.plane.front.aggregation import Aggregation
from kvestigate.cluster.plane.front.audit_log import AuditLog
from kvestigate.cluster.plane.front.guard import Guard, Visit
from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model import plane_paths, request_info
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.request import negotiate
from kvestigate.cluster.plane.request.call import Call, Services
from kvestigate.cluster.plane.request.fairness import Fairness
from kvestigate.cluster.plane.request.negotiate import Representation
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.errors import StoreFailed
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.tenancy import clusters
from kvestigate.cluster.plane.tenancy.environment import contract
from kvestigate.cluster.plane.tenancy.environment import routes as environment
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.cluster.plane.tenancy.planes import Planes
from kvestigate.cluster.plane.verbs.create import create
from kvestigate.cluster.plane.verbs.delete import delete, delete_collection
from kvestigate.cluster.plane.verbs.get import get
from kvestigate.cluster.plane.verbs.list import list_
from kvestigate.cluster.plane.verbs.patch import patch
from kvestigate.cluster.plane.verbs.subresources.registry import (
    PASSED_THROUGH,
    VIRTUAL,
    Verb,
    Verbs,
    verbs_of,
)
from kvestigate.cluster.plane.verbs.update import update
from kvestigate.cluster.plane.verbs.watch import watch
from kvestigate.http.message import Request, Response, Upgrade
from kvestigate.kube.resources import Resource

_log = logging.getLogger(__name__)

_SWITCHING = 101
"""The HTTP status of an upgrade."""

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


class ApiServer:
    """Serves every plane of a store. `handle` is a wire Handler."""

    def __init__(
        self,
        store: Store,
        authenticator: Authenticator,
        authorizer: Authorizer,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        backends: Backends | None = None,
        issuer: TokenIssuer | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        self._clock = clock or WallClock()
        self._random = random or Random()
        self._audit = audit
        self._metrics = metrics.Metrics()
        self.planes = Planes(store, self._clock)
        self.aggregation = Aggregation()
        self._guard = Guard(self.planes, authenticator, authorizer)
        self._services = Services(
            backends=backends or Backends(),
            issuer=issuer or TokenIssuer(SigningKey.generate()),
            authorizer=authorizer,
            authenticator=authenticator,
            fairness=Fairness(),
        )

    async def handle(self, incoming: Request, visit: Visit | None = None) -> Response | Upgrade:
        """`visit`: what is known of a request that comes from within this process."""
        began = time.perf_counter()
        received = self._clock.now()
        visit = visit or Visit()
        response: Response | Upgrade
        try:
            if visit.info is None:
                visit.plane, path = plane_paths.split(incoming.path)
                visit.info = request_info.parse(incoming.method, path, incoming.query)
                if (turn := self._services.fairness.ask(visit.plane)) is not None:
                    await turn
            response = await self._answer(visit, visit.info, incoming)
        except errors.ApiError as error:
            response = answer.failure(error)
        except StoreFailed as error:
            _log.error("%s %s: %s", incoming.method, incoming.path, error.message)
            response = answer.failure(
                errors.ServiceUnavailable(error.message, details={"retryAfterSeconds": 1})
            )
        except Exception:  # noqa: BLE001 - one broken request must not take the others along
            _log.exception("%s %s failed", incoming.method, incoming.path)
            response = answer.failure(
                errors.InternalError("the server could not finish the request")
            )
        code = response.status if isinstance(response, Response) else _SWITCHING
        self._metrics.observe(visit.info, code, time.perf_counter() - began)
        if self._audit is not None:
            self._audit.record(visit, incoming, response, received, self._clock.now())
        return response

    async def _answer(
        self, visit: Visit, info: RequestInfo, incoming: Request
    ) -> Response | Upgrade:
        if info.resource:
            plane, user = await self._guard.admit(visit, info, incoming)
            return await self._dispatch(plane, info, user, visit, incoming)
        name = visit.plane
        if name == plane_paths.ROOT and contract.owns(info):
            return contract.respond(info, incoming)
        whole = environment.owns(info.path)
        makes = not whole or name == plane_paths.ROOT
        plane, user = await self._guard.admit(visit, info, incoming, makes=makes)
        if whole:
            return await environment.respond(self._errand(plane, info, user, visit, incoming))
        breathe = partial(self._services.fairness.breathe, name)
        if name == plane_paths.ROOT and info.path == metrics.PATH:
            return await self._metrics.respond(self.planes.store, breathe)
        if name == plane_paths.ROOT and clusters.owns(info.path):
            return await clusters.respond(self.planes, info, incoming, breathe)
        if info.method == "GET" and info.path in issuer_discovery.PATHS:
            return issuer_discovery.respond(info.path, name, self._services.issuer, incoming)
        return await routes.respond(plane, self.aggregation, info, incoming, breathe)

    def _errand(
        self, plane: Plane, info: RequestInfo, user: User, visit: Visit, incoming: Request
    ) -> Errand:
        clock = self.planes.times.clock(plane)
        return Errand(
            self.planes,
            plane,
            info,
            user,
            visit.user or user,
            incoming,
            clock,
            self._random,
            self._services.authorizer,
            self._services.fairness,
        )

    async def _dispatch(
        self, plane: Plane, info: RequestInfo, user: User, visit: Visit, incoming: Request
    ) -> Response | Upgrade:
        known = self.aggregation.types(plane)
        kind = known.get(info.group, info.version, info.resource)
        if kind is None:
            if not _serves(known, info.group):
                return answer.plain("404 page not found\n", 404)
            raise errors.NotFound("the server could not find the requested resource", details={})
        if kind.type is None and _strays(kind.resource, info):
            return answer.plain("404 page not found\n", 404)
        clock, random = self.planes.times.sources(plane, self._random)
        call = Call(
            services=self._services,
            plane=plane,
            clock=clock,
            random=random,
            request=incoming,
            info=info,
            form=_form(info, incoming),
            user=user,
            served=kind,
            notes=visit.notes,
        )
        try:
            verb = _verb(kind, info, self.aggregation.verbs_of(kind))
            if kind.deprecation:
                call.warnings.append(kind.deprecation)
            return await verb(call)
        except errors.ApiError as error:
            response = answer.failure(error, call.warnings)
            return answer.as_yaml(response) if call.form.yaml else response


def _serves(known: Types, group: str) -> bool:
    """Whether the group has resources among which this one is missing; custom ones stand alone."""
    return any(kind.resource.group == group and kind.type is not None for kind in known)


def _strays(custom: Resource, info: RequestInfo) -> bool:
    """Whether a custom resource is asked for where none is: in a namespace, or in no namespace."""
    if info.namespace:
        return not custom.namespaced
    return custom.namespaced and info.verb not in ("list", "watch")


def _form(info: RequestInfo, incoming: Request) -> Representation:
    if info.subresource in PASSED_THROUGH:
        return Representation()  # the one behind us answers, in whatever form
    collective = info.verb in ("list", "watch")
    return negotiate.negotiate(incoming.headers.get("accept"), collective)


class _Route(NamedTuple):
    """What of a request says who answers it."""

    verb: str
    subresource: str
    in_namespace: bool
    named: bool


def _verb(served: Kind, info: RequestInfo, aggregated: Verbs | None) -> Verb:
    if info.rest and info.subresource != "proxy":
        raise errors.NotFound("the server could not find the requested resource", details={})
    route = _Route(info.verb, info.subresource, info.namespace != "", info.name != "")
    verb = _own_verb(served, route) if aggregated is None else _find(served, route, aggregated)
    if verb is None or (info.verb == "watch" and info.method not in _WATCHING):
        raise _not_allowed(served, info)
    return verb


_WATCHING = ("GET", "HEAD")


def _find(served: Kind, route: _Route, aggregated: Verbs | None = None) -> Verb | None:
    resource = served.resource
    verbs: Verbs
    if not _leads_somewhere(route, resource):
        raise errors.NotFound("the server could not find the requested resource", details={})
    if not _fits_path(route, resource):
        verbs = {}
    elif route.subresource and route.subresource != "status":
        verbs = verbs_of(served, route.subresource)
    elif aggregated is not None:
        verbs = aggregated
    elif served.stored.key in VIRTUAL:
        verbs = VIRTUAL[served.stored.key]
    else:
        allowed = resource.verbs if not route.subresource else ("get", "update", "patch")
        verbs = VERBS if route.verb in allowed else {}
    return verbs.get(route.verb)


_own_verb = lru_cache(maxsize=1024)(_find)


def _not_allowed(served: Kind, info: RequestInfo) -> errors.ApiError:
    if served.type is not None:
        return errors.MethodNotAllowed(
            "the server does not allow this method on the requested resource", details={}
        )
    if not info.name and info.verb in ("update", "patch"):
        return errors.BadRequest("name must be provided")
    resource = served.resource
    return errors.MethodNotAllowed(
        f'{info.verb} is not supported on resources of kind "{resource.qualified}"',
        details={"group": resource.group, "kind": resource.plural},
    )


def _leads_somewhere(route: _Route, resource: Resource) -> bool:
    """Whether there is anything at the path."""
    if route.subresource and (
        route.verb == "watch" or route.subresource not in resource.subresources
    ):
        return False
    if resource.namespaced:
        return route.in_namespace or not route.named or route.verb in _COLLECTIVE
    return not route.in_namespace or (resource.plural == "namespaces" and not resource.group)


_COLLECTIVE = ("list", "watch", "deletecollection")


def _fits_path(route: _Route, resource: Resource) -> bool:
    """Whether the verb is one for a path of this form: of a collection, or of an object."""
    if route.verb in ("update", "patch"):
        return route.named
    if route.verb == "create" and route.named and not route.subresource:
        return False
    everywhere = resource.namespaced and not route.in_namespace
    return not everywhere or route.verb in ("list", "watch")
