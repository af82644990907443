"""The transport from a plane's workers to its API server, in the server's own process.

No HTTP is written and parsed, and no credential is checked: the request is handed to the server
with the user it is made for. From there on it is treated like any other request: RBAC, verbs,
admission, metrics, the audit log.
"""

from __future__ import annotations

from urllib.parse import unquote, urlencode

from kvestigate import errors
from kvestigate.client.call import METHODS, Call, failure
from kvestigate.client.exchange import Exchange
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.request_info import RequestInfo, Visit, root_path
from kvestigate.cluster.plane.model.user import User
from kvestigate.http.message import Headers, Request, Response, Upgrade

_DIRECT = frozenset({"get", "create", "update", "patch", "delete"})
"""Verbs on one object. Verbs on many are rare and take more from their query: they go by path."""

Query = tuple[tuple[str, str], ...]


class DirectTransport(InProcessTransport):
    """The transport of one user to one plane."""

    def __init__(self, server: ApiServer, plane: str, user: User) -> None:
        agent = ("user-agent", user.name.removeprefix("system:"))
        base = root_path(plane)
        super().__init__(self._handle, base_path=base, headers=[agent])
        self._server = server
        self._plane = plane
        self._user = user
        self._base = base
        self._agent = agent

    async def ask(self, call: Call, query: Query) -> Response | Upgrade:
        """The answer to a call on one object, with further parameters."""
        if self._closed:
            raise errors.ConnectionFailed("this client is closed")
        path = call.resource.path(
            namespace=call.namespace, name=call.name, subresource=call.subresource
        )
        info = request_info_of(call, query, path)
        fields = [("accept", call.accept), self._agent]
        if call.body:
            fields.append(("content-type", call.content_type))
        text = _written((*call.query, *query))
        headers = Headers.parsed(fields)
        request = Request(info.method, self._base + path, text, headers, call.body)
        return await self._server.handle(request, Visit(self._plane, info, self._user))

    async def _handle(self, request: Request) -> Response | Upgrade:
        return await self._server.handle(request, Visit(user=self._user))


def request_info_of(call: Call, query: Query, path: str) -> RequestInfo:
    """What the server would read off the request to `path` that the call would become."""
    resource, name = call.resource, call.name or ""
    namespace = call.namespace or ""
    if resource.plural == "namespaces" and not resource.group:
        namespace = name
    return RequestInfo(
        METHODS[call.verb],
        unquote(path) if "%" in path else path,
        call.verb,
        resource.group,
        resource.version,
        resource.plural,
        namespace,
        name,
        call.subresource,
        params=dict((*call.query, *query)),
    )


def _written(query: Query) -> str:
    return urlencode(query)


class DirectExchange(Exchange):
    """Requests to a server in this process.

    No time of the loop passes between request and answer, so there is no deadline; and only an
    answer with `Retry-After` is asked for again.
    """

    def __init__(self, transport: DirectTransport) -> None:
        super().__init__(transport)
        self._direct = transport

    async def ask(self, call: Call, query: Query) -> bytes:
        """The body of a successful answer to a call."""
        if call.verb not in _DIRECT:
            return await self.body(call, call.request(*query))
        response = await self._direct.ask(call, query)
        assert isinstance(response, Response)
        assert isinstance(response.body, bytes)
        if 200 <= response.status < 300:
            return response.body
        if any(name == "retry-after" for name, _ in response.headers):
            return await self.body(call, call.request(*query))
        raise failure(call, response.status, response.body)
