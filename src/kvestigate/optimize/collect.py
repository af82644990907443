"""Where a fleet is known from: an audit that was kept, or the cluster as it is now.

Both are the same two reports, so the same questions get the same answers; only the time at
which they were taken differs.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.errors import Forbidden, InputError, NoCluster, UsageError
from kvestigate.optimize.model import Fleet, fleet_of
from kvestigate.reports import gpu, nodes
from kvestigate.reports.audit import Audit
from kvestigate.reports.difference import parse
from kvestigate.snapshot import listings
from kvestigate.snapshot.snapshot import Gap, take
from kvestigate.snapshot.source import Progress

_NEEDS = tuple(dict.fromkeys((*gpu.REPORT.needs, *nodes.REPORT.needs)))
_ALL_OF = tuple(listing.name for listing in (listings.NODES, listings.PODS))
"""Who cannot see all of these cannot say what is free."""


@dataclass(frozen=True, slots=True)
class Source:
    """Exactly one of the two."""

    audit: str | None = None
    """The text of a file that `audit --json` wrote."""
    live: bool = False
    """Ask the cluster."""
    name: str = "audit"
    """What messages call the file."""

    def __post_init__(self) -> None:
        if self.live == (self.audit is not None):
            raise UsageError(
                "--audit and --live contradict each other"
                if self.live
                else "nothing says where the fleet is known from",
                hint="give --audit FILE (`kvestigate audit --json FILE` writes it) or --live",
            )


async def read(access: Access | None, source: Source, progress: Progress | None = None) -> Fleet:
    """The fleet; `access` is needed only for a cluster."""
    if source.audit is not None:
        return from_audit(source.audit, source.name)
    if access is None:
        raise NoCluster("nothing says which cluster to ask")
    async with connect(access) as api:
        snapshot = await take(api, _NEEDS, progress)
    for gap in snapshot.missing((listings.NODES, listings.PODS)):
        raise Forbidden(_unseen(gap), hint="use a user who may list nodes and all pods")
    return fleet_of(
        gpu.collect(snapshot),
        nodes.collect(snapshot),
        captured_at=snapshot.captured_at,
        server=str(access.server),
    )


def from_audit(text: str, name: str) -> Fleet:
    """PURE. The fleet of a kept audit; InputError if that does not tell of the whole of it."""
    document = parse(text.encode(), name)
    try:
        audit = msgspec.convert({"skipped": [], "gaps": [], **document}, Audit)
        gpus = msgspec.convert(audit.reports.get("gpu"), gpu.GpuReport)
        hosts = msgspec.convert(audit.reports.get("nodes"), nodes.NodesReport)
    except msgspec.ValidationError as error:
        raise InputError(
            f"does not read as an audit: {error}",
            where=name,
            hint="make it anew: kvestigate audit --json FILE",
        ) from error
    if audit.namespace:
        raise InputError(
            f"looked only at the namespace {audit.namespace!r}: what others hold is not in it",
            where=name,
            hint="make one of everything: kvestigate audit --json FILE, without -n",
        )
    for gap in audit.gaps:
        if gap.resource in _ALL_OF:
            raise InputError(
                _unseen(gap), where=name, hint="audit as a user who may list nodes and all pods"
            )
    return fleet_of(gpus, hosts, captured_at=audit.captured_at, server=audit.server)


def _unseen(gap: Gap) -> str:
    return (
        f"{gap.resource} could not be read, and what is free follows from all of them: "
        f"{gap.message}"
    )
