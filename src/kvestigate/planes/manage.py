"""`plane list`, `plane create` and `plane delete`: what a server of planes has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec
from urllib.parse import urlencode

import msgspec

from kvestigate.client.access import Access
from kvestigate.client.call import failure
from kvestigate.client.connect import connect
from kvestigate.errors import InputError, NotFound
from kvestigate.http.message import Headers, Request
from kvestigate.operation import Effect, Operation
from kvestigate_client import contract
from kvestigate_client.contract import JSON, Clock, Outgoing
from kvestigate_client.failures import Invalid

P = ParamSpec("P")

_OURS = ("clusters", "checkpoints", "fleets")
"""Resources that only a server of planes has."""


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
    clock: Clock = "wall"
    """Virtual time passes only with `plane step`."""
    seed: int = 0
    """Seed of every random choice in a plane with a virtual clock."""


class Plane(msgspec.Struct, frozen=True):
    """One plane of a server."""

    id: str
    path: str
    """Where its API is, below the server's address: `/clusters/alpha/control-plane`."""


class PlaneList(msgspec.Struct, frozen=True):
    items: list[Plane]


async def list_planes(access: Access, options: Everything) -> PlaneList:
    return msgspec.json.decode(await ask(access, contract.list_planes), type=PlaneList)


async def create_plane(access: Access, options: NewPlane) -> Plane:
    answer = await ask(access, contract.create_plane, options.id, options.clock, options.seed)
    return msgspec.json.decode(answer, type=Plane)


async def delete_plane(access: Access, options: PlaneOptions) -> None:
    await ask(access, contract.delete_plane, options.id)


async def ask(
    access: Access, request: Callable[P, Outgoing], *args: P.args, **kwargs: P.kwargs
) -> bytes:
    """What the server answers to a request of the contract; what it refuses is raised."""
    try:
        outgoing = request(*args, **kwargs)
        body = outgoing.content
    except Invalid as error:
        raise InputError(error.message) from error
    headers = Headers([("accept", JSON), ("content-type", outgoing.media)])
    sent = Request(outgoing.method, outgoing.path, urlencode(outgoing.query), headers, body)
    async with connect(access) as api:
        incoming = await api.exchange.transport.send(sent, timeout=api.exchange.timeout)
        answer = await incoming.read()
    if incoming.status < 300:
        return answer
    failed = failure(sent, incoming.status, answer)
    if isinstance(failed, NotFound):
        failed.hint = failed.hint or _way_out(failed, str(access.server))
    raise failed


def _way_out(error: NotFound, server: str) -> str | None:
    kind = error.details.get("kind")
    if kind not in _OURS:
        return f"{server} does not serve planes; `kvestigate plane serve` starts a server that does"
    return "`kvestigate plane list` lists the planes of the server" if kind == "clusters" else None


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
    summary="Delete a plane with all its objects.",
    input=PlaneOptions,
    output=type(None),
    effect=Effect.DESTROY,
    handler=delete_plane,
)
