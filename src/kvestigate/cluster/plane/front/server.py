"""The API server: the way of every request, from a parsed HTTP message to its answer.

`ApiServer.handle` is the only way in: the HTTP server calls it for requests from the network,
controllers and nodes in the same process call it directly. Where clients can observe the order
of the steps, it is that of kube-apiserver's filters:

1. The plane is split off the path, and the rest becomes a RequestInfo (verb, group, resource,
   name). A path that cannot be parsed is refused before anyone is authenticated.
2. Fairness: while several planes have requests, each may begin only its share of them.
3. `_admit`: authentication, impersonation, authorization. A plane is loaded only for clients
   that are authenticated, and created only for requests that are authorized. Health and the
   version are public (`_is_public`), as the default roles of every cluster have it.
4. `_dispatch`: a request for a resource gets a `Call` and goes to a verb (`verbs.lookup`). All
   other paths are answered by the modules in `_answer_path`.
5. Metrics and the audit log see every answer, refusals included.

One class and no chain of middleware: kube-apiserver wraps handlers in handlers, which hides the
order and costs a stack frame per filter. Here the order is the text of `handle`.

Errors are answers. An ApiError becomes its Status, and a store that cannot write becomes a 503
that tells clients to retry. Anything else is a bug: it is logged with its traceback and answered
with a 500, because one broken request must not end the connections of other tenants.
ApiErrors of verbs are caught one level deeper, in `_dispatch`: only there is it known which
warnings to send along and whether the client asked for YAML.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from random import Random

from msgspec.structs import replace

from kvestigate import errors
from kvestigate.aio.aside import Aside
from kvestigate.aio.clock import Clock, WallClock
from kvestigate.cluster.plane.access.authn import impersonation
from kvestigate.cluster.plane.access.authn.jwt import SigningKey
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.interface import Authenticated, Authenticator, Authorizer
from kvestigate.cluster.plane.egress.reach import Backends
from kvestigate.cluster.plane.front import metrics, routes
from kvestigate.cluster.plane.front.audit_log import AuditLog
from kvestigate.cluster.plane.model import request_info
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.model.request_info import ROOT, RequestInfo, Visit
from kvestigate.cluster.plane.model.user import ANONYMOUS, Insider, User
from kvestigate.cluster.plane.request import negotiate
from kvestigate.cluster.plane.request.call import Call, Services
from kvestigate.cluster.plane.request.fairness import Fairness
from kvestigate.cluster.plane.request.negotiate import Representation
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.errors import StoreFailed
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.tenancy import clusters
from kvestigate.cluster.plane.tenancy.environment import contract
from kvestigate.cluster.plane.tenancy.environment import routes as environment
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.cluster.plane.tenancy.planes import Planes, authorize_creation, missing
from kvestigate.cluster.plane.verbs import lookup
from kvestigate.cluster.plane.verbs.lookup import Aggregation
from kvestigate.cluster.plane.verbs.subresources.registry import PASSED_THROUGH, has_table
from kvestigate.http.message import Request, Response, Upgrade

_log = logging.getLogger(__name__)

MUST_EXIST = "x-plane-must-exist"
"""A header with the value `true`: do not create the plane if it does not exist.

Clients that created a plane send it, so that a plane that was deleted meanwhile does not come
back empty with their next request."""

_SWITCHING_PROTOCOLS = 101


class ApiServer:
    """Serves every plane of a store. `handle` is the handler of an HTTP server."""

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
        self.backends = backends or Backends()
        self._services = Services(
            backends=self.backends,
            issuer=issuer or TokenIssuer(SigningKey.generate()),
            authorizer=authorizer,
            authenticator=authenticator,
            fairness=Fairness(),
            aside=Aside(),
        )

    async def act(self, insider: Insider, incoming: Request) -> Response | Upgrade:
        """Answer a request of a part of this server, which acts on one plane only."""
        return await self.handle(incoming, Visit(insider=insider))

    async def handle(self, incoming: Request, visit: Visit | None = None) -> Response | Upgrade:
        """Answer a request. Callers in this process give what they know of it as `visit`."""
        began = time.perf_counter()
        received = self._clock.now()
        visit = visit or Visit()
        response: Response | Upgrade
        try:
            if visit.info is None:
                visit.plane, visit.info = request_info.locate(
                    incoming.method, incoming.path, incoming.query
                )
                if (turn := self._services.fairness.ask(visit.plane)) is not None:
                    await turn
            if visit.info.resource:
                plane, user = await self._admit(visit, visit.info, incoming)
                response = await self._dispatch(plane, visit.info, user, visit, incoming)
            else:
                response = await self._answer_path(visit, visit.info, incoming)
        except errors.ApiError as error:
            response = answer.failure(error)
        except StoreFailed as error:
            _log.error("%s %s: %s", incoming.method, incoming.path, error.message)
            response = answer.failure(
                errors.ServiceUnavailable(error.message, details={"retryAfterSeconds": 1})
            )
        except Exception as error:  # noqa: BLE001 - a broken request must not take others along
            response = answer.failure(_refusal(error, incoming))
        code = response.status if isinstance(response, Response) else _SWITCHING_PROTOCOLS
        self._metrics.observe(visit.info, code, time.perf_counter() - began)
        if self._audit is not None:
            self._audit.record(visit, incoming, response, received, self._clock.now())
        return response

    async def _admit(
        self, visit: Visit, info: RequestInfo, incoming: Request, *, create_missing: bool = True
    ) -> tuple[Plane, User]:
        """The plane of a request and the user to act as; ApiError if the user may not.

        A plane that does not exist is created, but only after authorization (against the state
        that a new plane has), and only for those who may create planes. Without
        `create_missing`, or with the header MUST_EXIST, it is NotFound.
        """
        name = visit.plane
        # Authenticate before the plane is loaded: an unknown client must not cause disk reads.
        loaded = plane = self.planes.store.loaded(name)
        credential: Authenticated
        if visit.insider is None:
            credential = self._services.authenticator.authenticate(
                incoming, name, lambda: self.planes.times.clock(loaded).now()
            )
        elif visit.insider.plane == name:
            credential = visit.insider.user
        else:
            raise errors.Unauthorized("Unauthorized")
        if plane is None:
            plane = await self.planes.find(name)
        state = self.planes.template if plane is None else plane.state
        user = credential if isinstance(credential, User) else credential.redeem(state)
        visit.user = user
        if (target := impersonation.requested_user(incoming.headers)) is not None:
            user = visit.impersonated = impersonation.impersonate(
                self._services.authorizer, state, user, target, info
            )
        self._authorize(visit, state, user, info, incoming)
        visit.allowed = True
        if plane is None:
            if not create_missing or (incoming.headers.get(MUST_EXIST) == "true" and name != ROOT):
                raise missing(name)
            if name != ROOT and visit.insider is None:
                root = await self.planes.root_state()
                authorize_creation(self._services.authorizer, root, visit.user, user)
            plane = await self.planes.open(name)
        return plane, user

    def _authorize(
        self, visit: Visit, state: PlaneState, user: User, info: RequestInfo, incoming: Request
    ) -> None:
        """A part of this server may patch what it may update.

        Kubernetes' controllers update, and have no right to patch. Ours know only a part of each
        object and patch that, but could do the same with an update. An apply could do more: create.
        """
        authorize = self._services.authorizer.authorize
        if visit.insider is None or info.verb != "patch" or _is_apply(incoming):
            authorize(state, user, info)
            return
        try:
            authorize(state, user, replace(info, verb="update"))
        except errors.Forbidden:
            authorize(state, user, info)

    async def _dispatch(
        self, plane: Plane, info: RequestInfo, user: User, visit: Visit, incoming: Request
    ) -> Response | Upgrade:
        """Answer a request for a resource with the verb of its kind."""
        kind = lookup.find_kind(self.aggregation.types(plane), info)
        if kind is None:
            return answer.plain("404 page not found\n", 404)
        clock, random = self.planes.times.sources(plane, self._random)
        call = Call(
            services=self._services,
            plane=plane,
            clock=clock,
            random=random,
            request=incoming,
            info=info,
            form=_form(kind, info, incoming),
            user=user,
            owner=visit.user or user,
            served=kind,
            notes=visit.notes,
        )
        try:
            if not kind.is_prepared:
                await call.aside(kind.prepare)
            verb = lookup.find_verb(kind, info, self.aggregation.verbs_of(kind))
            if kind.deprecation:
                call.warnings.append(kind.deprecation)
            return await _in_yaml(call, await verb(call))
        except errors.ApiError as error:
            response = answer.failure(error, call.warnings)
            return answer.as_yaml(response) if call.form.yaml else response

    async def _answer_path(
        self, visit: Visit, info: RequestInfo, incoming: Request
    ) -> Response | Upgrade:
        """Answer a request that is not for a resource: planes, metrics, discovery, health."""
        name = visit.plane
        is_root = name == ROOT
        if is_root and contract.owns(info):
            return contract.respond(info, incoming)  # before authentication: it is public
        if await self._is_public(visit, info, incoming):
            return routes.public(info)
        about_plane = environment.owns(info.path)
        create_missing = is_root or not about_plane
        plane, user = await self._admit(visit, info, incoming, create_missing=create_missing)
        if about_plane:
            return await environment.respond(
                Errand(
                    self.planes,
                    plane,
                    info,
                    user,
                    visit.user or user,
                    incoming,
                    self.planes.times.clock(plane),
                    self._random,
                    self._services.authorizer,
                    self._services.fairness,
                )
            )
        breathe = partial(self._services.fairness.breathe, name)
        if is_root and info.path == metrics.PATH:
            return await self._metrics.respond(self.planes.store, breathe)
        if is_root and clusters.owns(info.path):
            return await clusters.respond(self.planes, info, incoming, breathe)
        return await routes.respond(
            plane, self.aggregation, self._services.issuer, info, incoming, breathe
        )

    async def _is_public(self, visit: Visit, info: RequestInfo, incoming: Request) -> bool:
        """Whether a client without credentials may have the answer: probes, load balancers.

        The root plane's RBAC decides, whatever plane the path names, and that plane is neither
        loaded nor created: strangers learn nothing of the planes of a server.
        """
        if info.path not in routes.PUBLIC or visit.insider is not None or _identifies(incoming):
            return False
        try:
            self._services.authorizer.authorize(await self.planes.root_state(), ANONYMOUS, info)
        except errors.Forbidden:
            return False  # and so Unauthorized
        visit.user, visit.allowed = ANONYMOUS, True
        return True


def _identifies(incoming: Request) -> bool:
    """Whether a request says in any way on whose behalf it is made."""
    return (
        bool(incoming.headers.get("authorization"))
        or incoming.peer.certificate is not None
        or impersonation.requested_user(incoming.headers) is not None
    )


def _is_apply(incoming: Request) -> bool:
    return incoming.headers.get("content-type").startswith("application/apply-patch")


async def _in_yaml(call: Call, response: Response | Upgrade) -> Response | Upgrade:
    """A long answer as YAML, if the client wants that: converting it would hold others up."""
    if not call.form.yaml or not isinstance(response, Response):
        return response
    data = response.body
    if not isinstance(data, bytes) or len(data) <= answer.LONG:
        return response
    if ("content-type", "application/yaml") in response.headers:
        return response
    return await call.aside(lambda: answer.as_yaml(response))


def _refusal(error: Exception, incoming: Request) -> errors.ApiError:
    """The answer to a request that ran into a limit of Python, or into a mistake of ours."""
    if isinstance(error, RecursionError):
        return errors.BadRequest("the request is nested too deeply")
    if isinstance(error, ValueError) and "integer string conversion" in str(error):
        return errors.BadRequest("the request has a number with too many digits")
    _log.error("%s %s failed", incoming.method, incoming.path, exc_info=error)
    return errors.InternalError("the server could not finish the request")


def _form(kind: Kind, info: RequestInfo, incoming: Request) -> Representation:
    if info.subresource in PASSED_THROUGH:
        return Representation()  # a kubelet or a pod answers, in a form of its own
    collective = info.verb in ("list", "watch")
    tabular = has_table(kind, info.subresource)
    return negotiate.negotiate(incoming.headers.get("accept"), collective, tabular)
