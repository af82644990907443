"""What measured GPUs cost a month, by what they do. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvestigate.optimize.activity import NodeWindow
from kvestigate.optimize.energy import UNKNOWN
from kvestigate.snapshot.ledger.spending import NOTHING, Spend, spend_of
from kvestigate.snapshot.prices import HOURS_A_MONTH, Prices


@dataclass(frozen=True, slots=True)
class Bill:
    """A month, if the GPUs go on as measured."""

    prices: str
    """`assumed prices of 2026-11-01, USD`"""
    currency: str
    total: Spend
    by_activity: dict[str, Spend]
    """Activity, or `unknown` -> the GPUs that do that; only activities that occur."""
    power: float
    """Money for the power that was measured; 0 without a price of power."""
    unpriced: tuple[str, ...] = ()
    """Models without a price."""

    @property
    def idle(self) -> Spend:
        kinds = ("idle", "reserved-idle")
        return sum((self.by_activity.get(kind, NOTHING) for kind in kinds), NOTHING).in_cents()


def bill(nodes: Sequence[NodeWindow], models: Mapping[str, str], prices: Prices) -> Bill:
    """`models` is by node."""
    by_activity: dict[str, Spend] = {}
    for node in nodes:
        hourly = prices.hourly(models.get(node.node, ""))
        for gpu in node.gpus:
            activity = gpu.activity.value if gpu.activity is not None else UNKNOWN
            spend = spend_of(1, hourly)
            by_activity[activity] = by_activity.get(activity, NOTHING) + spend
    watts = sum(gpu.watts or 0.0 for node in nodes for gpu in node.gpus)
    present = {models.get(node.node, "") for node in nodes if node.gpus}
    return Bill(
        prices=prices.source,
        currency=prices.currency,
        total=sum(by_activity.values(), NOTHING).in_cents(),
        by_activity={name: spend.in_cents() for name, spend in by_activity.items()},
        power=round(prices.power_hourly(watts) * HOURS_A_MONTH, 2),
        unpriced=tuple(sorted(model for model in present if prices.hourly(model) is None)),
    )
