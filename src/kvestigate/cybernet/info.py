"""What anybody may know of a cyberspace: what it offers, where, and how much is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvestigate import __version__
from kvestigate.cybernet.gateway import Gateway
from kvestigate.cybernet.parameters import result_schema
from kvestigate.cybernet.quotas import Usage
from kvestigate.cybernet.spec import (
    API_VERSION,
    HostConstraintsSpec,
    QuotaSpec,
    WorkspaceConstraintsSpec,
)


@dataclass(frozen=True, slots=True)
class Offer:
    name: str
    summary: str
    effect: str
    """`read`, `write` or `destroy`"""
    parameters: dict[str, Any]
    """JSON Schema."""
    result: dict[str, Any]
    """JSON Schema."""


@dataclass(frozen=True, slots=True)
class Constraints:
    hosts: HostConstraintsSpec
    workspace: WorkspaceConstraintsSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    api_version: str = API_VERSION
    version: str = __version__
    name: str
    description: str
    operations: tuple[Offer, ...]
    constraints: Constraints
    quotas: QuotaSpec
    usage: Usage | None
    """When it was last counted, which each request for a workspace does; None: not yet."""


def offers_of(gateway: Gateway) -> tuple[Offer, ...]:
    """What is offered for as long as the gateway runs: schemas take 30 ms to make."""
    return tuple(
        Offer(it.name, it.summary, it.effect.value, gateway.schema(it), result_schema(it))
        for it in gateway.operations.values()
    )


def info_of(gateway: Gateway, offers: tuple[Offer, ...]) -> Info:
    space = gateway.space
    return Info(
        name=space.metadata.name,
        description=space.metadata.description,
        operations=offers,
        constraints=Constraints(space.hosts, space.workspace),
        quotas=space.quotas,
        usage=gateway.ledger.known,
    )
