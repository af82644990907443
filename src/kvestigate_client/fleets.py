"""Fleets: many planes, declared as one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kvestigate_client import contract
from kvestigate_client.contract import FLEETS, Outgoing
from kvestigate_client.exchange import Asynchronous, AsyncHttp, Blocking, Steps, operation
from kvestigate_client.failures import PlaneError
from kvestigate_client.planes import AsyncPlane, Plane
from kvestigate_client.results import FleetStatus, Object

if TYPE_CHECKING:
    import httpx2

_SLACK = 10.0
"""Seconds that a watch may outlast the time it was given."""


class FleetOperations:
    """What can be done with a Fleet, whichever way it is run."""

    name: str

    @property
    def path(self) -> str:
        return contract.fleet_path(self.name)

    @operation
    def create(
        self,
        replicas: int = 1,
        *,
        template: Mapping[str, Any] | None = None,
        names: Sequence[str] = (),
        name_prefix: str = "",
        ttl_seconds: int | None = None,
        member_ttl_seconds: int | None = None,
    ) -> Steps[Object]:
        """Declare it. A template may have `objects`, `scenario`, `fromPlane`, `fromSnapshot`,
        `clock` and `seed`."""
        made: Object = yield contract.create_fleet(
            self.name,
            replicas,
            template=template,
            names=names,
            name_prefix=name_prefix,
            ttl_seconds=ttl_seconds,
            member_ttl_seconds=member_ttl_seconds,
        )
        return made

    @operation
    def status(self) -> Steps[FleetStatus]:
        return FleetStatus.read((yield contract.get_fleet(self.name)))

    @operation
    def scale(self, replicas: int) -> Steps[None]:
        yield contract.scale_fleet(self.name, replicas)

    @operation
    def delete(self) -> Steps[None]:
        """Delete it with its members."""
        yield contract.delete_fleet(self.name)

    @operation
    def wait(self, timeout: float = 60.0) -> Steps[FleetStatus]:
        """Until every member is ready; PlaneError if one fails or it takes too long."""
        fleet = yield contract.get_fleet(self.name)
        status = FleetStatus.read(fleet)
        if not status.settled:
            params = {
                "watch": True,
                "fieldSelector": f"metadata.name={self.name}",
                "resourceVersion": fleet["metadata"]["resourceVersion"],
                "timeoutSeconds": max(1, round(timeout)),
            }
            event = yield Outgoing("GET", FLEETS, params, until=_settled, timeout=timeout + _SLACK)
            if event is None:
                raise PlaneError(f"fleet {self.name} is not ready after {timeout:g} s")
            if event["type"] != "MODIFIED":
                raise PlaneError(f"fleet {self.name} is gone")
            status = FleetStatus.read(event["object"])
        if status.failed:
            raise PlaneError(f"fleet {self.name}: {status.failed[0].message}")
        return status


def _settled(event: Any) -> bool:
    return event["type"] != "MODIFIED" or FleetStatus.read(event["object"]).settled


class Fleet(FleetOperations, Blocking):
    """A Fleet of a server; `PlaneClient.fleet` gives you one."""

    def __init__(self, http: httpx2.Client, timeout: float, name: str) -> None:
        super().__init__(http, timeout)
        self.name = name

    def planes(self) -> Sequence[Plane]:
        """The members that are ready."""
        members = self.status().members
        ready = [member.cluster_id for member in members if member.phase == "Ready"]
        return [Plane(self._http, self._timeout, plane_id) for plane_id in ready]


class AsyncFleet(FleetOperations, Asynchronous):
    """A Fleet of a server; `AsyncPlaneClient.fleet` gives you one."""

    def __init__(self, http: AsyncHttp, timeout: float, name: str) -> None:
        super().__init__(http, timeout)
        self.name = name

    async def planes(self) -> Sequence[AsyncPlane]:
        """The members that are ready."""
        members = (await self.status()).members
        ready = [member.cluster_id for member in members if member.phase == "Ready"]
        return [AsyncPlane(self._http, self._timeout, plane_id) for plane_id in ready]
