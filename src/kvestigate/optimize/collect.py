"""Reading a fleet: from a saved audit, or from the cluster.

Both contain the same two reports, so they give the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.errors import Forbidden, InputError, NoCluster, UsageError
from kvestigate.health.audit import Audit
from kvestigate.health.difference import parse
from kvestigate.operation import param
from kvestigate.optimize.model import Fleet, fleet_of
from kvestigate.reports import gpu, nodes
from kvestigate.snapshot import listings
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.gaps import Gap
from kvestigate.snapshot.scheduling import BUDGETS, NODES, PODS, Situation
from kvestigate.snapshot.source import Progress

_NEEDS = tuple(dict.fromkeys((*gpu.REPORT.needs, *nodes.REPORT.needs)))
_ALL_OF = tuple(listing.name for listing in (listings.NODES, listings.PODS))
"""Free GPUs are unknown if one of these cannot be listed."""


@dataclass(frozen=True, slots=True)
class AuditFile:
    text: str
    name: str = "audit"
    """The name of the file in messages."""


def read_audit(name: str) -> AuditFile:
    try:
        return AuditFile(Path(name).read_text(encoding="utf-8"), name)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        raise InputError(
            f"cannot be read: {reason}",
            where=name,
            hint="create one with `kvestigate audit --json FILE`",
        ) from error


@dataclass(frozen=True, slots=True)
class FleetSource:
    """Where the fleet is read from: exactly one of `audit` and `live`."""

    audit: Annotated[
        AuditFile | None,
        param(
            "Read the allocated GPUs from a file of `kvestigate audit --json FILE`.",
            metavar="FILE",
            parse=read_audit,
        ),
    ] = None
    live: Annotated[bool, param("Read the allocated GPUs from the cluster.")] = False

    def __post_init__(self) -> None:
        if self.live == (self.audit is not None):
            raise UsageError(
                "--audit and --live cannot be combined"
                if self.live
                else "neither --audit nor --live is given",
                hint="give --audit FILE (`kvestigate audit --json FILE` writes it) or --live",
            )


async def read(
    access: Access | None, source: FleetSource, progress: Progress | None = None
) -> Fleet:
    """The fleet; `access` is needed only with `live`."""
    if source.audit is not None:
        return from_audit(source.audit.text, source.audit.name)
    if access is None:
        raise NoCluster("no cluster is given")
    async with connect(access) as api:
        snapshot = await take(api, _NEEDS, progress)
    for gap in snapshot.missing((listings.NODES, listings.PODS)):
        raise Forbidden(_unseen(gap), hint="use a user that may list nodes and all pods")
    return fleet_of(
        gpu.collect(snapshot),
        nodes.collect(snapshot),
        captured_at=snapshot.captured_at,
        server=str(access.server),
    )


def require_readable(situation: Situation) -> None:
    """Raises Forbidden if a plan cannot be made, or what is left of one cannot be checked."""
    situation.require((NODES, PODS, BUDGETS), "whether pods can move is unknown")


def from_audit(text: str, name: str) -> Fleet:
    """PURE. The fleet of a saved audit. Raises InputError if nodes or pods are missing in it."""
    document = parse(text.encode(), name)
    try:
        audit = msgspec.convert({"skipped": [], "gaps": [], **document}, Audit)
        gpus = msgspec.convert(audit.reports.get("gpu"), gpu.GpuReport)
        hosts = msgspec.convert(audit.reports.get("nodes"), nodes.NodesReport)
    except msgspec.ValidationError as error:
        raise InputError(
            f"is not a valid audit: {error}",
            where=name,
            hint="create a new one: kvestigate audit --json FILE",
        ) from error
    if audit.namespace:
        raise InputError(
            f"is an audit of namespace {audit.namespace!r}: GPUs of other namespaces are unknown",
            where=name,
            hint="audit the whole cluster: kvestigate audit --json FILE",
        )
    for gap in audit.gaps:
        if gap.resource in _ALL_OF:
            raise InputError(
                _unseen(gap), where=name, hint="audit as a user that may list nodes and all pods"
            )
    return fleet_of(gpus, hosts, captured_at=audit.captured_at, server=audit.server)


def _unseen(gap: Gap) -> str:
    return f"free GPUs are unknown: cannot {gap.verb} {gap.resource}: {gap.message}"
