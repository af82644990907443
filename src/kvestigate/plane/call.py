"""One API request on its way through a plane: everything a verb may need."""

from __future__ import annotations

from collections.abc import Awaitable
from random import Random

import msgspec
from msgspec.structs import replace

from kvestigate.aio.clock import Clock
from kvestigate.errors import AlreadyExists, BadRequest, Conflict, NotFound
from kvestigate.kube import causes, names
from kvestigate.plane.authn.interface import Authenticator
from kvestigate.plane.authn.service_accounts import TokenIssuer
from kvestigate.plane.authn.user import User
from kvestigate.plane.authz.interface import Authorizer
from kvestigate.plane.fairness import Fairness
from kvestigate.plane.kinds.kind import Kind, Scene
from kvestigate.plane.kubelet.reach import Backends
from kvestigate.plane.negotiate import Representation
from kvestigate.plane.request import Asked
from kvestigate.plane.store.model import Item
from kvestigate.plane.store.plane import Plane
from kvestigate.plane.store.state import PlaneState
from kvestigate.wire.message import Request


class Call(msgspec.Struct, frozen=True):
    plane: Plane
    asked: Asked
    served: Kind
    """The kind at the version that the client speaks."""
    user: User
    request: Request
    form: Representation
    clock: Clock
    random: Random
    """The source of uids and generated names: seeded where runs must repeat."""
    backends: Backends
    """The way to kubelets and pods."""
    issuer: TokenIssuer
    """Of service-account tokens."""
    authorizer: Authorizer
    """Asked again when a request does more than its verb says."""
    authenticator: Authenticator
    """Asked whose a token is that somebody else was shown."""
    warnings: list[str]
    """Sent along with the answer."""
    notes: dict[str, str]
    """Kept in the audit log."""
    fairness: Fairness

    @property
    def kind(self) -> Kind:
        """The kind whose rules the objects follow, at the version in which they are stored."""
        return self.served.stored

    async def pause(self) -> None:
        """Let others have their turn: to be called after every half millisecond of work."""
        await self.fairness.pause(self.plane.name)

    def breathe(self) -> Awaitable[None]:
        """Between two steps of a request: let others have their turn if the first took long."""
        return self.fairness.breathe(self.plane.name)

    def require(self, verb: str) -> None:
        """Forbidden, unless the user may do this too."""
        asked = replace(self.asked, verb=verb)
        self.authorizer.authorize(self.plane.state, self.user, asked)

    def scene(self, state: PlaneState) -> Scene:
        return Scene(state, self.user, self.clock.now(), self.asked.subresource)

    @property
    def namespace(self) -> str:
        """Of the object; empty for cluster-scoped ones."""
        return self.asked.namespace if self.kind.resource.namespaced else ""

    def find(self, state: PlaneState) -> Item:
        """The object that the path names, or NotFound."""
        asked, kind = self.asked, self.served.stored
        namespace = asked.namespace if kind.resource.namespaced else ""
        item = state.get(kind.key, namespace, asked.name)
        if item is None:
            raise self.not_found()
        return item

    @property
    def dry_run(self) -> bool:
        value = self.asked.params.get("dryRun")
        if value is not None and value != "All":
            cause = causes.unsupported("dryRun", [value], ["All"])
            raise causes.reject(_OPTIONS[self.asked.verb], "meta.k8s.io", "", [cause])
        return value == "All"

    @property
    def field_manager(self) -> str:
        """Who changes fields: as told, else the program before the `/` of the User-Agent."""
        told = self.asked.params.get("fieldManager", "")
        if told:
            return told
        agent = self.request.headers.get("user-agent").partition("/")[0]
        return agent[:128] or "unknown"

    def not_found(self) -> NotFound:
        self.check_name()
        return NotFound(self._say("not found"), details=self._details())

    def check_name(self) -> None:
        """Refuse names that no object can have, as they would lead elsewhere in a path."""
        name = self.asked.name
        if problems := names.path_segment_problems(name):
            told = msgspec.json.encode(name).decode()
            raise BadRequest(f"Name parameter invalid: {told}: {';'.join(problems)}")

    def already_exists(self, name: str) -> AlreadyExists:
        resource = self.served.resource
        return AlreadyExists(
            f'{resource.qualified} "{name}" already exists', details=self._details(name)
        )

    def conflict(self, why: str) -> Conflict:
        return Conflict(
            f"Operation cannot be fulfilled on {self.served.resource.qualified} "
            f'"{self.asked.name}": {why}',
            details=self._details(),
        )

    def modified(self) -> Conflict:
        return self.conflict(
            "the object has been modified; please apply your changes to the latest version and "
            "try again"
        )

    def _say(self, what: str) -> str:
        return f'{self.served.resource.qualified} "{self.asked.name}" {what}'

    def _details(self, name: str | None = None) -> dict[str, str]:
        resource = self.served.resource
        details = {"name": self.asked.name if name is None else name}
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
