"""How much agents hold, and whether one may have more. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kvestigate.cybernet.refusals import QuotaExceeded
from kvestigate.cybernet.spec import QuotaSpec
from kvestigate.render.human import size


@dataclass(frozen=True, slots=True)
class Holding:
    """A workspace, or an App in pods: there, or about to be."""

    node: str
    """Empty if it is in pods."""
    name: str
    """Of an App in pods, `namespace/name`."""
    owner: str
    gpus: int = 0
    memory: int = 0
    """Bytes: of tmpfs, or that pods may take."""
    count: int = 1
    """As many as which it counts: a pod is as good as a workspace."""

    @property
    def place(self) -> tuple[str, str]:
        return self.node, self.name


@dataclass(frozen=True, slots=True)
class Usage:
    workspaces: int
    gpus: int
    memory: int
    """Bytes: of tmpfs, or that pods may take."""


def owner_of(cyberspace: str, identity: str) -> str:
    """What a workspace says of whom it belongs to: identities of two cyberspaces differ."""
    return f"{cyberspace}/{identity}"


def holder_of(owner: str) -> str:
    """In whose name an owner holds a workspace: what an App has within a cyberspace is its
    identity's."""
    return owner.partition(" app ")[0]


def of_cyberspace(holdings: Iterable[Holding], cyberspace: str) -> list[Holding]:
    """Those of its identities; an operator's own are not counted."""
    return [it for it in holdings if it.owner.startswith(f"{cyberspace}/")]


def usage(holdings: Collection[Holding]) -> Usage:
    count = sum(it.count for it in holdings)
    return Usage(count, sum(it.gpus for it in holdings), sum(it.memory for it in holdings))


def check(quotas: QuotaSpec, held: Iterable[Holding], wanted: Holding) -> None:
    """QuotaExceeded unless `wanted` fits beside what is held, of which it may be one already."""
    others = [it for it in held if it.place != wanted.place]
    own = sum(it.count for it in others if it.owner == wanted.owner) + wanted.count
    total = usage([*others, wanted])
    _within(
        own,
        quotas.max_active_workspaces_per_identity,
        "max_active_workspaces_per_identity",
        f"you would have {own} workspaces",
    )
    _within(
        total.workspaces,
        quotas.max_total_active_workspaces,
        "max_total_active_workspaces",
        f"there would be {total.workspaces} workspaces",
    )
    if wanted.gpus:
        _within(
            total.gpus,
            quotas.max_total_active_gpu,
            "max_total_active_gpu",
            f"workspaces would hold {total.gpus} GPUs",
        )
    if wanted.memory:
        _within(
            total.memory,
            quotas.max_total_active_memory,
            "max_total_active_memory",
            f"workspaces would hold {size(total.memory)} of memory",
        )


def _within(amount: int, limit: int | None, name: str, what: str) -> None:
    if limit is not None and amount > limit:
        shown = size(limit) if name.endswith("memory") else str(limit)
        raise QuotaExceeded(
            f"{what}, and {shown} is the limit",
            f"quotas.{name}",
            hint="destroy a workspace first",
        )
