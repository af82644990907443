"""`optimize waste`: who holds GPUs for nothing, since when, and what that costs a month."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.errors import Forbidden, UsageError
from kvestigate.kube.names import qualified_name_problems
from kvestigate.operation import param
from kvestigate.reports.cost import held, holders_known
from kvestigate.snapshot.collect import take
from kvestigate.snapshot.ledger.build import COUNTS, NEEDS, ledger
from kvestigate.snapshot.ledger.spending import NAMESPACE, WORKLOAD, Spending, spending
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


async def waste(access: Access, options: WasteOptions, progress: Progress | None = None) -> Waste:
    async with connect(access) as api:
        snapshot = await take(api, NEEDS, progress)
    book = snapshot.derived(ledger)
    if not holders_known(book):
        gap = snapshot.missing(COUNTS)[0]
        raise Forbidden(
            f"who holds GPUs is unknown: cannot {gap.verb} {gap.resource}: {gap.message}",
            hint="use a user that may list nodes, pods, resourceslices and resourceclaims",
        )
    return Waste(
        captured_at=snapshot.captured_at,
        server=str(access.server),
        spending=spending(book, snapshot.derived(held), options.prices or DEFAULT, options.by),
    )
