"""`plane list`, `plane create` and `plane delete`: what a server of planes has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from kvestigate.client.access import Access
from kvestigate.client.call import failure
from kvestigate.client.connect import connect
from kvestigate.errors import NotFound
from kvestigate.http.message import Headers, Request
from kvestigate.operation import Effect, Operation

PATH = "/clusters"
JSON = "application/json"
_OURS = ("clusters", "checkpoints", "fleets")
"""What only a server of planes has."""


@dataclass(frozen=True, slots=True)
class Everything:
    """No options."""


@dataclass(frozen=True, slots=True)
class PlaneOptions:
    id: str
    """`alpha`: lower-case letters, digits and hyphens."""


@dataclass(frozen=True, slots=True)
class NewPlane:
    id: str
    """`alpha`: lower-case letters, digits and hyphens."""
    clock: Literal["wall", "virtual"] = "wall"
    """Virtual time is moved by steps only."""
    seed: int = 0
    """Of all that looks random in a plane with a virtual clock."""


class Plane(msgspec.Struct, frozen=True):
    """One plane of a server."""

    id: str
    path: str
    """Where its API is, below the server's address: `/clusters/alpha/control-plane`."""


class PlaneList(msgspec.Struct, frozen=True):
    items: list[Plane]


async def list_planes(access: Access, options: Everything) -> PlaneList:
    return msgspec.json.decode(await ask(access, "GET", PATH), type=PlaneList)


async def create_plane(access: Access, options: NewPlane) -> Plane:
    body = msgspec.json.encode(options)
    return msgspec.json.decode(await ask(access, "POST", PATH, body), type=Plane)


async def delete_plane(access: Access, options: PlaneOptions) -> None:
    await ask(access, "DELETE", f"{PATH}/{options.id}")


async def ask(
    access: Access, method: str, path: str, body: bytes = b"", query: str = "", media: str = JSON
) -> bytes:
    """What the server answers; what it refuses is raised."""
    headers = Headers([("accept", JSON), ("content-type", media)])
    request = Request(method, path, query, headers=headers, body=body)
    async with connect(access) as api:
        incoming = await api.exchange.transport.send(request, timeout=api.exchange.timeout)
        answer = await incoming.read()
    if incoming.status < 300:
        return answer
    error = failure(request, incoming.status, answer)
    if isinstance(error, NotFound):
        error.hint = error.hint or _way_out(error, str(access.server))
    raise error


def _way_out(error: NotFound, server: str) -> str | None:
    kind = error.details.get("kind")
    if kind not in _OURS:
        return f"{server} is no server of planes; `kvestigate plane serve` is one"
    return "`kvestigate plane list` shows those that there are" if kind == "clusters" else None


LIST = Operation(
    name="plane.list",
    summary="List the planes of a running server.",
    input=Everything,
    output=PlaneList,
    effect=Effect.READ,
    handler=list_planes,
)
CREATE = Operation(
    name="plane.create",
    summary="Create a plane on a running server.",
    input=NewPlane,
    output=Plane,
    effect=Effect.WRITE,
    handler=create_plane,
)
DELETE = Operation(
    name="plane.delete",
    summary="Delete a plane with everything in it.",
    input=PlaneOptions,
    output=type(None),
    effect=Effect.DESTROY,
    handler=delete_plane,
)
