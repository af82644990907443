"""The API server: from a request to an answer, through the filters that guard every route."""

from __future__ import annotations

import logging
import time
from functools import lru_cache, partial
from random import Random
from typing import NamedTuple

from kvestigate import errors
from kvestigate.aio.clock import Clock, WallClock
from kvestigate.kube.resources import Resource
from kvestigate.plane import (
    answer,
    clusters,
    issuer_discovery,
    metrics,
    negotiate,
    request,
    routes,
    tenancy,
)
from kvestigate.plane.aggregation import Aggregation
from kvestigate.plane.audit import AuditLog
from kvestigate.plane.authn.interface import Authenticator
from kvestigate.plane.authn.jwt import SigningKey
from kvestigate.plane.authn.service_accounts import TokenIssuer
from kvestigate.plane.authn.user import User
from kvestigate.plane.authz.interface import Authorizer
from kvestigate.plane.call import Call
from kvestigate.plane.environment import contract
from kvestigate.plane.environment import routes as environment
from kvestigate.plane.environment.errand import Errand
from kvestigate.plane.fairness import Fairness
from kvestigate.plane.guard import Guard, Visit
from kvestigate.plane.kinds.kind import Kind
from kvestigate.plane.kubelet.reach import Backends
from kvestigate.plane.negotiate import Representation
from kvestigate.plane.planes import Planes
from kvestigate.plane.request import Asked
from kvestigate.plane.store.errors import StoreFailed
from kvestigate.plane.store.plane import Plane
from kvestigate.plane.store.store import Store
from kvestigate.plane.subresources.registry import (
    PASSED_THROUGH,
    VIRTUAL,
    Verb,
    Verbs,
    verbs_of,
)
from kvestigate.plane.types import Types
from kvestigate.plane.verbs.create import create
from kvestigate.plane.verbs.delete import delete, delete_collection
from kvestigate.plane.verbs.get import get
from kvestigate.plane.verbs.list import list_
from kvestigate.plane.verbs.patch import patch
from kvestigate.plane.verbs.update import update
from kvestigate.plane.verbs.watch import watch
from kvestigate.wire.message import Request, Response, Upgrade

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
        self._backends = backends or Backends()
        self._issuer = issuer or TokenIssuer(SigningKey.generate())
        self._audit = audit
        self._metrics = metrics.Metrics()
        self.planes = Planes(store, self._clock)
        self.aggregation = Aggregation()
        self._authorizer = authorizer
        self._authenticator = authenticator
        self._guard = Guard(self.planes, authenticator, authorizer)
        self._fairness = Fairness()

    async def handle(self, incoming: Request, visit: Visit | None = None) -> Response | Upgrade:
        """`visit`: what is known of a request that comes from within this process."""
        began = time.perf_counter()
        received = self._clock.now()
        visit = visit or Visit()
        response: Response | Upgrade
        try:
            if visit.asked is None:
                visit.plane, path = tenancy.split(incoming.path)
                visit.asked = request.parse(incoming.method, path, incoming.query)
                if (turn := self._fairness.ask(visit.plane)) is not None:
                    await turn
            response = await self._answer(visit, visit.asked, incoming)
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
        self._metrics.observe(visit.asked, code, time.perf_counter() - began)
        if self._audit is not None:
            self._audit.record(visit, incoming, response, received, self._clock.now())
        return response

    async def _answer(self, visit: Visit, asked: Asked, incoming: Request) -> Response | Upgrade:
        if asked.resource:
            plane, user = await self._guard.admit(visit, asked, incoming)
            return await self._dispatch(plane, asked, user, visit, incoming)
        name = visit.plane
        if name == tenancy.ROOT and contract.owns(asked):
            return contract.respond(asked, incoming)
        whole = environment.owns(asked.path)
        makes = not whole or name == tenancy.ROOT
        plane, user = await self._guard.admit(visit, asked, incoming, makes=makes)
        if whole:
            return await environment.respond(self._errand(plane, asked, user, visit, incoming))
        breathe = partial(self._fairness.breathe, name)
        if name == tenancy.ROOT and asked.path == metrics.PATH:
            return await self._metrics.respond(self.planes.store, breathe)
        if name == tenancy.ROOT and clusters.owns(asked.path):
            return await clusters.respond(self.planes, asked, incoming, breathe)
        if asked.method == "GET" and asked.path in issuer_discovery.PATHS:
            return issuer_discovery.respond(asked.path, name, self._issuer, incoming)
        return await routes.respond(plane, self.aggregation, asked, incoming, breathe)

    def _errand(
        self, plane: Plane, asked: Asked, user: User, visit: Visit, incoming: Request
    ) -> Errand:
        clock = self.planes.times.clock(plane)
        return Errand(
            self.planes,
            plane,
            asked,
            user,
            visit.user or user,
            incoming,
            clock,
            self._random,
            self._authorizer,
            self._fairness,
        )

    async def _dispatch(
        self, plane: Plane, asked: Asked, user: User, visit: Visit, incoming: Request
    ) -> Response | Upgrade:
        known = self.aggregation.types(plane)
        kind = known.get(asked.group, asked.version, asked.resource)
        if kind is None:
            if not _serves(known, asked.group):
                return answer.plain("404 page not found\n", 404)
            raise errors.NotFound("the server could not find the requested resource", details={})
        if kind.type is None and _strays(kind.resource, asked):
            return answer.plain("404 page not found\n", 404)
        clock, random = self.planes.times.sources(plane, self._random)
        call = Call(
            plane,
            asked,
            kind,
            user,
            incoming,
            _form(asked, incoming),
            clock,
            random,
            self._backends,
            self._issuer,
            self._authorizer,
            self._authenticator,
            [],
            visit.notes,
            self._fairness,
        )
        try:
            verb = _verb(kind, asked, self.aggregation.verbs_of(kind))
            if kind.deprecation:
                call.warnings.append(kind.deprecation)
            return await verb(call)
        except errors.ApiError as error:
            response = answer.failure(error, call.warnings)
            return answer.as_yaml(response) if call.form.yaml else response


def _serves(known: Types, group: str) -> bool:
    """Whether the group has resources among which this one is missing; custom ones stand alone."""
    return any(kind.resource.group == group and kind.type is not None for kind in known)


def _strays(custom: Resource, asked: Asked) -> bool:
    """Whether a custom resource is asked for where none is: in a namespace, or in no namespace."""
    if asked.namespace:
        return not custom.namespaced
    return custom.namespaced and asked.verb not in ("list", "watch")


def _form(asked: Asked, incoming: Request) -> Representation:
    if asked.subresource in PASSED_THROUGH:
        return Representation()  # the one behind us answers, in whatever form
    collective = asked.verb in ("list", "watch")
    return negotiate.negotiate(incoming.headers.get("accept"), collective)


class _Route(NamedTuple):
    """What of a request says who answers it."""

    verb: str
    subresource: str
    in_namespace: bool
    named: bool


def _verb(served: Kind, asked: Asked, aggregated: Verbs | None) -> Verb:
    if asked.rest and asked.subresource != "proxy":
        raise errors.NotFound("the server could not find the requested resource", details={})
    route = _Route(asked.verb, asked.subresource, asked.namespace != "", asked.name != "")
    verb = _own_verb(served, route) if aggregated is None else _find(served, route, aggregated)
    if verb is None or (asked.verb == "watch" and asked.method not in _WATCHING):
        raise _not_allowed(served, asked)
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


def _not_allowed(served: Kind, asked: Asked) -> errors.ApiError:
    if served.type is not None:
        return errors.MethodNotAllowed(
            "the server does not allow this method on the requested resource", details={}
        )
    if not asked.name and asked.verb in ("update", "patch"):
        return errors.BadRequest("name must be provided")
    resource = served.resource
    return errors.MethodNotAllowed(
        f'{asked.verb} is not supported on resources of kind "{resource.qualified}"',
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
