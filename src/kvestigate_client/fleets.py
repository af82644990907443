"""Fleets: many planes, declared as one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from kvestigate_client.exchange import (
    MERGE,
    Asynchronous,
    AsyncHttp,
    Blocking,
    Outgoing,
    Steps,
    operation,
)
from kvestigate_client.failures import PlaneError
from kvestigate_client.paths import segment
from kvestigate_client.planes import AsyncPlane, Plane
from kvestigate_client.results import FleetStatus, Object

FLEETS = "/apis/kplane.dev/v1/fleets"
_SLACK = 10.0
"""Seconds that a watch may outlast the time it was given."""


class FleetOperations:
    """What can be done with a Fleet, whichever way it is run."""

    name: str

    @property
    def path(self) -> str:
        return f"{FLEETS}/{segment(self.name)}"

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
        spec = {
            "replicas": replicas,
            "template": template,
            "names": list(names) or None,
            "namePrefix": name_prefix or None,
            "ttlSeconds": ttl_seconds,
            "memberTTLSeconds": member_ttl_seconds,
        }
        body = {
            "apiVersion": "kplane.dev/v1",
            "kind": "Fleet",
            "metadata": {"name": self.name},
            "spec": {key: value for key, value in spec.items() if value is not None},
        }
        strict = {"fieldValidation": "Strict"}  # or what is misspelt would be left out
        made: Object = yield Outgoing("POST", FLEETS, strict, body)
        return made

    @operation
    def status(self) -> Steps[FleetStatus]:
        return FleetStatus.read((yield Outgoing("GET", self.path)))

    @operation
    def scale(self, replicas: int) -> Steps[None]:
        yield Outgoing("PATCH", self.path, body={"spec": {"replicas": replicas}}, media=MERGE)

    @operation
    def delete(self) -> Steps[None]:
        """Delete it with its members."""
        yield Outgoing("DELETE", self.path)

    @operation
    def wait(self, timeout: float = 60.0) -> Steps[FleetStatus]:
        """Until every member is ready; PlaneError if one fails or it takes too long."""
        found = yield Outgoing("GET", self.path)
        status = FleetStatus.read(found)
        if not status.settled:
            params = {
                "watch": True,
                "fieldSelector": f"metadata.name={self.name}",
                "resourceVersion": found["metadata"]["resourceVersion"],
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
        ready = [each.cluster_id for each in members if each.phase == "Ready"]
        return [Plane(self._http, self._timeout, each) for each in ready]


class AsyncFleet(FleetOperations, Asynchronous):
    """A Fleet of a server; `AsyncPlaneClient.fleet` gives you one."""

    def __init__(self, http: AsyncHttp, timeout: float, name: str) -> None:
        super().__init__(http, timeout)
        self.name = name

    async def planes(self) -> Sequence[AsyncPlane]:
        """The members that are ready."""
        members = (await self.status()).members
        ready = [each.cluster_id for each in members if each.phase == "Ready"]
        return [AsyncPlane(self._http, self._timeout, each) for each in ready]
