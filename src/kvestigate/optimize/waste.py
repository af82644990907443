"""`optimize waste`: who holds GPUs for nothing, since when, and what that costs a month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.errors import Forbidden, UsageError
from kvestigate.kube.names import qualified_name_problems
from kvestigate.operation import param
from kvestigate.optimize.history import Look, idle_since, load
from kvestigate.reports.cost import held, holders_known
from kvestigate.snapshot import listings
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.ledger.build import COUNTS, NEEDS, ledger
from kvestigate.snapshot.ledger.holdings import Holding
from kvestigate.snapshot.ledger.model import Ledger
from kvestigate.snapshot.ledger.spending import NAMESPACE, WORKLOAD, Spending, spending
from kvestigate.snapshot.model_servers import Serving, ask
from kvestigate.snapshot.price_files import HELP, load_prices
from kvestigate.snapshot.prices import DEFAULT, Prices
from kvestigate.snapshot.source import Progress

SCHEMA = "kvestigate.optimize.waste/v1"


@dataclass(frozen=True, slots=True)
class WasteOptions:
    by: Annotated[
        str,
        param(
            f"Group pods by {NAMESPACE}, {WORKLOAD}, or a label of pods, for example team.",
            metavar="KEY",
        ),
    ] = WORKLOAD
    prices: Annotated[Prices, param(HELP, metavar="FILE", parse=load_prices)] | None = None
    history: Annotated[
        str,
        param(
            "Say since when GPUs are idle, from a file of `optimize watch --keep FILE`.",
            metavar="FILE",
        ),
    ] = ""

    def __post_init__(self) -> None:
        if problems := qualified_name_problems(self.by):
            raise UsageError(
                f"--by {self.by[:80]}: {problems[0]}",
                hint=f"give {NAMESPACE}, {WORKLOAD} or the key of a label",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    schema: str = SCHEMA
    captured_at: datetime
    """UTC."""
    server: str
    spending: Spending
    served: int | None
    """Pods with a model server that was asked; None if asking is forbidden."""
    looks: int = 0
    """How many times the history file has looked at the GPUs."""


async def waste(access: Access, options: WasteOptions, progress: Progress | None = None) -> Waste:
    looks = load(Path(options.history)) if options.history else []
    async with connect(access) as api:
        at, book, own, served = await read_holdings(api, progress)
    told = [_with_evidence(one, served or {}, looks) for one in own]
    return Waste(
        captured_at=at,
        server=str(access.server),
        spending=spending(book, told, options.prices or DEFAULT, options.by),
        served=None if served is None else len(served),
        looks=len(looks),
    )


Served = Mapping[tuple[str, str], Serving]


async def read_holdings(
    api: Api, progress: Progress | None = None
) -> tuple[datetime, Ledger, tuple[Holding, ...], Served | None]:
    """When, the ledger, who holds what, and what model servers say; None if they may not be asked.

    Raises Forbidden if the GPUs or their holders are unknown.
    """
    snapshot = await take(api, NEEDS, progress)
    book = snapshot.derived(ledger)
    if not holders_known(book):
        gap = snapshot.missing(COUNTS)[0]
        raise Forbidden(
            f"who holds GPUs is unknown: cannot {gap.verb} {gap.resource}: {gap.message}",
            hint="use a user that may list nodes, pods, resourceslices and resourceclaims",
        )
    own = snapshot.derived(held)
    names = {(one.namespace, one.pod) for one in own}
    pods = [
        pod
        for pod in snapshot.of(listings.PODS)
        if (pod.metadata.namespace, pod.metadata.name) in names
    ]
    try:
        served: Served | None = await ask(api, pods)
    except Forbidden:
        served = None
    return snapshot.captured_at, book, own, served


def _with_evidence(one: Holding, served: Served, looks: Sequence[Look]) -> Holding:
    """With what its model server says, and from when on it did nothing."""
    work = served.get((one.namespace, one.pod))
    since = idle_since(looks, f"{one.namespace}/{one.pod}")
    if since is None and work is not None and work.never_used:
        since = work.started
    return replace(one, serving=work, idle_since=since)
