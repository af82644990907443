"""A server of planes, asked blocking or asynchronously."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from kvestigate_client import contract
from kvestigate_client.connection import TIMEOUT, Connection
from kvestigate_client.contract import Clock, Outgoing
from kvestigate_client.exchange import Asynchronous, AsyncHttp, Blocking, Steps, operation
from kvestigate_client.failures import NotFound
from kvestigate_client.fleets import AsyncFleet, Fleet
from kvestigate_client.planes import AsyncPlane, Plane


class ServerOperations:
    """What can be done with a server, whichever way it is run."""

    @operation
    def planes(self) -> Steps[list[str]]:
        """The ids of all planes."""
        return [plane["id"] for plane in (yield contract.list_planes())["items"]]

    @operation
    def fleets(self) -> Steps[list[str]]:
        """The names of all Fleets."""
        return [fleet["metadata"]["name"] for fleet in (yield contract.list_fleets())["items"]]

    @operation
    def exists(self, id: str) -> Steps[bool]:
        try:
            yield contract.get_plane(id)
        except NotFound:
            return False
        return True

    @operation
    def delete(self, id: str) -> Steps[None]:
        """Remove a plane with everything in it."""
        yield contract.delete_plane(id)

    @operation
    def contract(self) -> Steps[dict[str, Any]]:
        """The OpenAPI document that the server keeps to."""
        document: dict[str, Any] = yield Outgoing("GET", "/openapi/kplane.json")
        return document

    @operation
    def contract_text(self) -> Steps[str]:
        """The same as it was written, in YAML."""
        return str((yield Outgoing("GET", "/openapi/kplane.yaml")))

    @operation
    def _create(self, id: str, clock: Clock, seed: int) -> Steps[None]:
        yield contract.create_plane(id, clock, seed)


class PlaneClient(ServerOperations, Blocking):
    """A server of planes.

    with PlaneClient.from_kubeconfig("admin.kubeconfig") as client:
        plane = client.create("alpha")
    """

    def __init__(self, connection: Connection) -> None:
        import httpx2

        super().__init__(httpx2.Client(**connection.arguments()), connection.timeout)
        self._connection = connection

    def __reduce__(self) -> tuple[type[PlaneClient], tuple[Connection]]:
        """In another process it has connections of its own."""
        return type(self), (self._connection,)

    @classmethod
    def from_kubeconfig(cls, path: str | Path, *, timeout: float = TIMEOUT) -> PlaneClient:
        return cls(Connection.from_kubeconfig(path, timeout=timeout))

    def plane(self, id: str) -> Plane:
        """One plane; nothing is asked yet."""
        return Plane(self._http, self._timeout, id)

    def fleet(self, name: str) -> Fleet:
        """One Fleet; nothing is asked yet."""
        return Fleet(self._http, self._timeout, name)

    def create(self, id: str, *, clock: Clock = "wall", seed: int = 0) -> Plane:
        """A new plane; with a virtual clock its time is moved by steps only."""
        self._create(id, clock, seed)
        return self.plane(id)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> PlaneClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncPlaneClient(ServerOperations, Asynchronous):
    """A server of planes, for programs that await."""

    def __init__(self, connection: Connection) -> None:
        import httpx2

        http = AsyncHttp(httpx2.AsyncClient(**connection.arguments()))
        super().__init__(http, connection.timeout)

    @classmethod
    def from_kubeconfig(cls, path: str | Path, *, timeout: float = TIMEOUT) -> AsyncPlaneClient:
        return cls(Connection.from_kubeconfig(path, timeout=timeout))

    def plane(self, id: str) -> AsyncPlane:
        """One plane; nothing is asked yet."""
        return AsyncPlane(self._http, self._timeout, id)

    def fleet(self, name: str) -> AsyncFleet:
        """One Fleet; nothing is asked yet."""
        return AsyncFleet(self._http, self._timeout, name)

    async def create(self, id: str, *, clock: Clock = "wall", seed: int = 0) -> AsyncPlane:
        """A new plane; with a virtual clock its time is moved by steps only."""
        await self._create(id, clock, seed)
        return self.plane(id)

    async def close(self) -> None:
        await self._http.client.aclose()

    async def __aenter__(self) -> AsyncPlaneClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
