"""One API request on its way through a plane: everything a verb may need."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kvestigate.aio.aside import Aside
from kvestigate.aio.clock import Clock
from kvestigate.aio.stepped import SteppedLoop
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.interface import Authenticator, Authorizer
from kvestigate.cluster.plane.egress.reach import Backends, Egress
from kvestigate.cluster.plane.model.kind import Kind, Scene
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.request.fairness import Fairness
from kvestigate.cluster.plane.request.negotiate import Representation
from kvestigate.cluster.plane.store.model import Change, Item, Mutation
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import AlreadyExists, BadRequest, Conflict, NotFound
from kvestigate.http.message import Request
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause
from kvestigate.kube.cel.budget import scarce

T = TypeVar("T")


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """What all requests to a server share."""

    backends: Backends
    """The way to kubelets, pods and webhooks."""
    issuer: TokenIssuer
    """Signs and verifies the tokens of service accounts."""
    authorizer: Authorizer
    """Asked again when a request does more than its verb says."""
    authenticator: Authenticator
    """Asked by a TokenReview to whom a token belongs."""
    fairness: Fairness
    """Has the planes of a server take turns."""
    aside: Aside
    """Has long work done in threads."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    services: Services
    plane: Plane
    clock: Clock
    """The plane's time: the wall clock's, or a virtual one."""
    random: Random
    """The source of uids and generated names: seeded where runs must repeat."""
    request: Request
    info: RequestInfo
    """What the path and the query of the request ask for."""
    form: Representation
    """How the client wants to read the answer."""
    user: User
    """The user that the request acts as."""
    owner: User
    """The user whose credentials were sent; differs from `user` under impersonation."""
    served: Kind
    """The kind at the version that the client speaks."""
    notes: dict[str, str]
    """Kept in the audit log."""
    warnings: list[str] = msgspec.field(default_factory=list)
    """Sent along with the answer."""

    @property
    def backends(self) -> Egress:
        """The way to this plane's kubelets, pods and webhooks."""
        return self.services.backends.of(self.plane.name)

    @property
    def issuer(self) -> TokenIssuer:
        return self.services.issuer

    @property
    def kind(self) -> Kind:
        """The kind whose rules the objects follow, at the version in which they are stored."""
        return self.served.stored

    async def pause(self) -> None:
        """Let requests of other planes run. Call this after every half millisecond of work."""
        await self.services.fairness.pause(self.plane.name)

    def breathe(self) -> Awaitable[None]:
        """Let requests of other planes run if this one has taken long: called between steps."""
        return self.services.fairness.breathe(self.plane.name)

    async def aside(self, work: Callable[[], T]) -> T:
        """The result of pure work that a tenant can make long: it is done beside the loop."""
        if isinstance(asyncio.get_running_loop(), SteppedLoop):
            with scarce():  # a loop inside the loop cannot wait for a thread
                return work()
        return await self.services.aside.run(self.plane.name, work)

    def require(self, verb: str) -> None:
        """Raise Forbidden unless the user may also use this verb on the object."""
        info = replace(self.info, verb=verb)
        self.services.authorizer.authorize(self.plane.state, self.user, info)

    def scene(self, state: PlaneState) -> Scene:
        return Scene(state, self.user, self.clock.now(), self.info.subresource, self.owner)

    def commit(self, mutations: Sequence[Mutation]) -> Awaitable[list[Change]]:
        """Store mutations in the name of the user, all of them or none."""
        return self.plane.commit(mutations, self.user.name, self.clock.now())

    @property
    def namespace(self) -> str:
        """The namespace of the object; empty for cluster-scoped kinds."""
        return self.info.namespace if self.kind.resource.namespaced else ""

    def find(self, state: PlaneState) -> Item:
        """The object that the path names, or NotFound."""
        info, kind = self.info, self.served.stored
        namespace = info.namespace if kind.resource.namespaced else ""
        item = state.get(kind.key, namespace, info.name)
        if item is None:
            raise self.not_found()
        return item

    def check_write(self, *, applies: bool = False) -> None:
        """Refuse malformed options of a create, update or patch.

        `applies`: the patch is a server-side apply.
        """
        params = self.info.params
        if not params and not applies:
            return
        problems: list[Cause] = []
        manager = params.get("fieldManager", "")
        if self.info.verb == "patch" and self.info.flag("force") and not applies:
            problems.append(causes.forbidden("force", "may not be specified for non-apply patch"))
        if applies and not manager:
            problems.append(causes.required("fieldManager", "is required for apply patch"))
        problems += _check_manager(manager)
        if "dryRun" in params:
            problems += check_dry_run([params["dryRun"]])
        validation = params.get("fieldValidation", "")
        if validation not in _VALIDATIONS:
            problems.append(causes.unsupported("fieldValidation", validation, _VALIDATIONS))
        if problems:
            raise causes.reject(_OPTIONS[self.info.verb], "meta.k8s.io", "", problems)

    @property
    def dry_run(self) -> bool:
        value = self.info.params.get("dryRun")
        if value is None:
            return False
        if problems := check_dry_run([value]):
            raise causes.reject(_OPTIONS[self.info.verb], "meta.k8s.io", "", problems)
        return True

    @property
    def field_manager(self) -> str:
        """`fieldManager` of the query, else the part of the User-Agent before the `/`."""
        if manager := self.info.params.get("fieldManager", ""):
            return manager
        agent = self.request.headers.get("user-agent").partition("/")[0]
        return agent[:128] or "unknown"

    def not_found(self) -> NotFound:
        self.check_name()
        return NotFound(self._say("not found"), details=self._details())

    def check_name(self) -> None:
        """Refuse names that cannot be part of a URL path."""
        name = self.info.name
        if problems := names.path_segment_problems(name):
            quoted = msgspec.json.encode(name).decode()
            raise BadRequest(f"Name parameter invalid: {quoted}: {';'.join(problems)}")

    def already_exists(self, name: str) -> AlreadyExists:
        resource = self.served.resource
        return AlreadyExists(
            f'{resource.qualified} "{name}" already exists', details=self._details(name)
        )

    def conflict(self, why: str) -> Conflict:
        return Conflict(
            f"Operation cannot be fulfilled on {self.served.resource.qualified} "
            f'"{self.info.name}": {why}',
            details=self._details(),
        )

    def modified(self) -> Conflict:
        return self.conflict(
            "the object has been modified; please apply your changes to the latest version and "
            "try again"
        )

    def _say(self, what: str) -> str:
        return f'{self.served.resource.qualified} "{self.info.name}" {what}'

    def _details(self, name: str | None = None) -> dict[str, str]:
        resource = self.served.resource
        details = {"name": self.info.name if name is None else name}
        if resource.group:
            details["group"] = resource.group
        return {**details, "kind": resource.plural}


_OPTIONS = {
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
    "delete": "DeleteOptions",
    "deletecollection": "DeleteOptions",
}
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_MANAGER_LIMIT = 128


def check_dry_run(values: list[str]) -> list[Cause]:
    if not values or values == ["All"]:
        return []
    return [causes.unsupported("dryRun", values, ["All"])]


def _check_manager(manager: str) -> list[Cause]:
    problems: list[Cause] = []
    if len(manager.encode()) > _MANAGER_LIMIT:
        problems.append(causes.too_long("fieldManager", _MANAGER_LIMIT))
    for position, char in enumerate(manager):
        if not char.isprintable():
            why = f"invalid character U+{ord(char):04X} (at position {position})"
            problems.append(causes.invalid("fieldManager", manager, why))
    return problems
