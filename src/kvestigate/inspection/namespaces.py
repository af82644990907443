"""`namespaces`: the namespaces with their number of pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.errors import Forbidden
from kvestigate.operation import Effect, Operation, touches_nothing, with_progress
from kvestigate.render.blocks import Block, Cell, Field, Tone, table, text
from kvestigate.render.human import age
from kvestigate.snapshot import listings
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.gaps import Gap
from kvestigate.snapshot.source import Progress


@dataclass(frozen=True, slots=True)
class NamespacesOptions:
    """`namespaces` has no options."""


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    name: str
    phase: str
    pods: int
    running: int
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Namespaces:
    namespaces: tuple[NamespaceRow, ...]
    gaps: tuple[Gap, ...]


async def list_namespaces(
    access: Access, options: NamespacesOptions, progress: Progress | None = None
) -> Namespaces:
    wanted = (listings.NAMESPACES, listings.PODS)
    async with connect(access) as api:
        snapshot = await take(api, wanted, progress)
    if not snapshot.knows(listings.NAMESPACES):
        raise Forbidden(snapshot.gaps[listings.NAMESPACES].message)
    pods = snapshot.of(listings.PODS)
    counts = Counter(pod.metadata.namespace for pod in pods)
    running = Counter(pod.metadata.namespace for pod in pods if pod.status.phase == "Running")
    rows = tuple(
        NamespaceRow(
            name=namespace.metadata.name,
            phase=namespace.status.phase,
            pods=counts[namespace.metadata.name],
            running=running[namespace.metadata.name],
            age_seconds=_age(namespace.metadata.creation_timestamp, snapshot.captured_at),
        )
        for namespace in snapshot.of(listings.NAMESPACES)
    )
    return Namespaces(rows, snapshot.missing(wanted))


def _age(then: datetime | None, now: datetime) -> float:
    return (now - then).total_seconds() if then else 0.0


def namespaces_blocks(result: Namespaces) -> Sequence[Block]:
    known = not any(gap.resource == "pods" for gap in result.gaps)
    notes = [text(f"{gap.resource}: unknown ({gap.message})", Tone.WARN) for gap in result.gaps]
    return [
        table(
            result.namespaces,
            Field("name", lambda row: row.name),
            Field(
                "status",
                lambda row: Cell(row.phase, Tone.PLAIN if row.phase == "Active" else Tone.WARN),
            ),
            Field("pods", lambda row: str(row.pods) if known else "unknown", number=True),
            Field("running", lambda row: str(row.running) if known else "unknown", number=True),
            Field("age", lambda row: age(row.age_seconds), number=True),
            empty="no namespaces",
        ),
        *notes,
    ]


NAMESPACES: Operation[NamespacesOptions, Namespaces] = Operation(
    name="namespaces",
    summary="List namespaces with their number of pods.",
    examples=("kvestigate namespaces", "kvestigate namespaces -o json"),
    input=NamespacesOptions,
    output=Namespaces,
    effect=Effect.READ,
    touches=touches_nothing,
    for_agents=True,
    handler=with_progress(list_namespaces),
    counts=True,
    render=namespaces_blocks,
)
