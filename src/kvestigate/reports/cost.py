"""What the GPUs of a cluster cost a month, by namespace, and how much of it is idle. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.render.blocks import Block, Cell, Field, Table, Tone, table, text
from kvestigate.render.human import size
from kvestigate.reports.model import Report
from kvestigate.snapshot import listings
from kvestigate.snapshot.ledger.build import NEEDS, ledger
from kvestigate.snapshot.ledger.holdings import Holding, holdings
from kvestigate.snapshot.ledger.model import Ledger
from kvestigate.snapshot.ledger.spending import NAMESPACE, Group, Spend, Spending, spending
from kvestigate.snapshot.model import Snapshot

_SHOWN = 20


def held(snapshot: Snapshot) -> tuple[Holding, ...]:
    """For `Snapshot.derived`."""
    readings = snapshot.listed.get(listings.GPU_READINGS, ())
    return holdings(snapshot.derived(ledger), snapshot.of(listings.PODS), readings)


def collect(snapshot: Snapshot) -> Spending | None:
    """None if the GPUs or their holders are unknown."""
    book = snapshot.derived(ledger)
    if snapshot.namespace or not holders_known(book):
        return None
    return spending(book, snapshot.derived(held), snapshot.prices, NAMESPACE)


def holders_known(book: Ledger) -> bool:
    """Whether all GPUs and all their holders are in the ledger."""
    complete = book.nodes is not None and book.consumers is not None and book.slices_known
    return complete and None not in (book.whole.allocated, book.partitions.allocated)


def render(report: Spending | None) -> Sequence[Block]:
    if report is None:
        return [text("cost of GPUs: unknown (not all GPUs and pods could be listed)", Tone.WARN)]
    if not report.total.gpus and not report.groups and not report.unknown:
        return [text("no GPUs")]
    return [text(headline(report)), *cost_notes(report), groups_table(report)]


def headline(report: Spending) -> str:
    """`140,256 USD a month for 64 GPUs; 85,469 USD for 39 idle ones`"""
    parts = [
        f"{money(report.total, report)} a month for {amount(report.total.gpus)} GPUs",
        f"{money(report.idle, report)} for {amount(report.idle.gpus)} allocated and idle",
        f"{money(report.unallocated, report)} for {amount(report.unallocated.gpus)} unallocated",
    ]
    if report.unmeasured.gpus:
        parts.append(
            f"{money(report.unmeasured, report)} for {amount(report.unmeasured.gpus)} whose use is "
            "unknown (no GPU exporter measured them)"
        )
    return "; ".join(parts)


def cost_notes(report: Spending) -> list[Block]:
    notes: list[Block] = [text(f"by {report.prices}; give yours with --prices FILE", Tone.DIM)]
    notes += [
        text(f"no price for {amount(gpus)} GPUs of model {model or '(unknown)'}", Tone.WARN)
        for model, gpus in sorted(report.unpriced.items())
    ]
    if report.unknown:
        named = ", ".join(report.unknown[:3])
        more = f" and {len(report.unknown) - 3} more" if len(report.unknown) > 3 else ""
        notes.append(text(f"not in the figures: GPUs of {named}{more}: unknown", Tone.WARN))
    return notes


def groups_table(report: Spending) -> Table:
    return table(
        report.groups[:_SHOWN],
        Field(report.by, lambda row: row.name),
        Field("pods", lambda row: str(row.pods), number=True),
        Field("GPUs", lambda row: amount(row.held.gpus), number=True),
        Field("a month", lambda row: money(row.held, report), number=True),
        Field("idle GPUs", _idle_gpus, number=True),
        Field("idle a month", lambda row: _idle_money(row, report), number=True),
        Field("idle memory", lambda row: mib(row.memory_mib), number=True, wide=True),
        empty="no pod holds GPUs",
    )


def _idle_gpus(row: Group) -> str:
    return "unknown" if row.unmeasured.gpus == row.held.gpus else amount(row.idle.gpus)


def _idle_money(row: Group, report: Spending) -> str | Cell:
    if row.unmeasured.gpus == row.held.gpus:
        return "unknown"
    return Cell(money(row.idle, report), Tone.WARN if row.idle.month else Tone.PLAIN)


def amount(gpus: float) -> str:
    """`8`, `2.14`"""
    return f"{gpus:.2f}".rstrip("0").rstrip(".")


def money(spend: Spend, report: Spending) -> str:
    """`28,490 USD`"""
    return f"{spend.month:,.0f} {report.currency}"


def mib(memory: float) -> str:
    return size(int(memory) * 1024 * 1024) if memory else "-"


REPORT = Report(
    name="cost",
    summary="What GPUs cost a month by namespace, and how much of that is idle.",
    needs=NEEDS,
    collect=collect,
    render=render,
)
