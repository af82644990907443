"""`plane list`, `plane create` and `plane delete`: what a server of planes has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ParamSpec
from urllib.parse import urlencode

import msgspec

from kvestigate.client.access import Access
from kvestigate.client.call import failure
from kvestigate.client.connect import connect
from kvestigate.errors import InputError, NotFound
from kvestigate.http.message import Headers, Request
from kvestigate.operation import param
from kvestigate_client import contract
from kvestigate_client.contract import JSON, Clock, Outgoing
from kvestigate_client.failures import Invalid

P = ParamSpec("P")

_OURS = ("clusters", "checkpoints", "fleets")
"""Resources that only a server of planes has."""


PlaneId = Annotated[str, param("The plane: lower-case letters, digits and hyphens.", argument=True)]
ClockChoice = Annotated[
    Clock, param("The clock of the plane; virtual time passes only with `plane step`.")
]
Seed = Annotated[
    int,
    param(
        "Seed of every random choice in a plane with a virtual clock.",
        metavar="N",
        lowest=-(2**63),
        highest=2**63 - 1,
    ),
]


@dataclass(frozen=True, slots=True)
class Everything:
    """No options."""


@dataclass(frozen=True, slots=True)
class PlaneOptions:
    id: PlaneId


@dataclass(frozen=True, slots=True)
class NewPlane:
    id: PlaneId
    clock: ClockChoice = "wall"
    seed: Seed = 0


class Plane(msgspec.Struct, frozen=True):
    """One plane of a server."""

    id: str
    path: str
    """Where its API is, below the server's address: `/clusters/alpha/control-plane`."""


class DeletedPlane(msgspec.Struct, frozen=True):
    id: str


class PlaneList(msgspec.Struct, frozen=True):
    items: list[Plane]


async def list_planes(access: Access, options: Everything) -> PlaneList:
    return msgspec.json.decode(await ask(access, contract.list_planes), type=PlaneList)


async def create_plane(access: Access, options: NewPlane) -> Plane:
    answer = await ask(access, contract.create_plane, options.id, options.clock, options.seed)
    return msgspec.json.decode(answer, type=Plane)


async def delete_plane(access: Access, options: PlaneOptions) -> DeletedPlane:
    await ask(access, contract.delete_plane, options.id)
    return DeletedPlane(options.id)


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
