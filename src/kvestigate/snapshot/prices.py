"""What an hour of a GPU costs, by model, and a kilowatt-hour. Pure.

The default table has assumed prices: round figures for an order of magnitude, of no provider. Who
knows what the GPUs cost gives a file:

    currency: EUR
    as_of: 2026-11-01
    use: reserved
    power: {kwh: 0.21, overhead: 1.3}
    gpus:
      H100: {on_demand: 2.80, reserved: 1.90}
      A100-SXM4-80GB: {on_demand: 1.50}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from math import isfinite
from typing import Annotated, Any

from kvestigate.errors import InputError
from kvestigate.kube.documents import one_document, read

HOURS_A_MONTH = 8766 / 12
"""A twelfth of 365.25 days."""
ON_DEMAND, RESERVED = "on-demand", "reserved"

_WORD = re.compile(r"[a-z]+|[0-9]+")
_MOST = 1_000_000.0


def _amount(value: Any, where: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not isfinite(value) or not 0 <= value <= _MOST:
        raise InputError(
            f"{value!r} is not an amount of money", where=where, hint="write for example 2.80"
        )
    return float(value)


def _day(value: Any, where: str) -> date:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        hint = "write for example 2026-11-01"
        raise InputError(f"{value!r} is not a date", where=where, hint=hint) from None


@dataclass(frozen=True, slots=True)
class GpuPrice:
    """One GPU for an hour."""

    on_demand: Annotated[float, _amount]
    reserved: Annotated[float | None, _amount] = None


@dataclass(frozen=True, slots=True)
class PowerPrice:
    kwh: Annotated[float, _amount] = 0.0
    overhead: Annotated[float, _amount] = 1.0
    """Watts that are paid for each watt of a GPU: cooling and the like."""


@dataclass(frozen=True, slots=True)
class Prices:
    gpus: Mapping[str, GpuPrice]
    """By model. All words of it are in the model of a GPU; the longest that fits counts."""
    currency: str = "USD"
    as_of: Annotated[date | None, _day] = None
    use: str = ON_DEMAND
    """`on-demand` or `reserved`; a model without a reserved price has its other one."""
    power: PowerPrice = field(default_factory=PowerPrice)

    def __post_init__(self) -> None:
        if self.use not in (ON_DEMAND, RESERVED):
            raise InputError(
                f"{self.use!r} is not a kind of price",
                where="use",
                hint=f"write {ON_DEMAND} or {RESERVED}",
            )
        if not re.fullmatch(r"[A-Z]{3}", self.currency):
            raise InputError(
                f"{self.currency!r} is not a currency",
                where="currency",
                hint="write for example EUR",
            )

    def hourly(self, model: str) -> float | None:
        """The price of a GPU for an hour; None if the table does not have its model."""
        words = _words(model)
        fitting = [name for name in self.gpus if _words(name) and set(_words(name)) <= set(words)]
        if not fitting:
            return None
        price = self.gpus[max(fitting, key=lambda name: (len(_words(name)), name))]
        reserved = self.use == RESERVED and price.reserved is not None
        return price.reserved if reserved else price.on_demand

    def power_hourly(self, watts: float) -> float:
        return watts / 1000 * self.power.kwh * self.power.overhead

    @property
    def source(self) -> str:
        """`assumed prices of 2026-11-01, USD`"""
        when = f" of {self.as_of}" if self.as_of else ""
        name = "assumed prices" if self is DEFAULT else f"{self.use} prices"
        return f"{name}{when}, {self.currency}"


def read_prices(data: bytes, source: str) -> Prices:
    """The prices of a YAML file. InputError names the field that is wrong."""
    file = one_document(data, source, "table of prices")
    with file.mistakes():
        return read(Prices, file.value)


def _words(model: str) -> list[str]:
    """`NVIDIA-A100-SXM4-80GB` -> nvidia, a, 100, sxm, 4, 80, gb"""
    return _WORD.findall(model.lower())


def _listed(**on_demand: float) -> dict[str, GpuPrice]:
    return {model.replace("_", " "): GpuPrice(price) for model, price in on_demand.items()}


DEFAULT = Prices(
    gpus=_listed(
        B200=5.5,
        H200=3.5,
        H100=3.0,
        A100=1.8,
        L40S=1.2,
        L40=1.0,
        L4=0.7,
        A10=0.8,
        RTX_PRO_6000=1.8,
        RTX_6000=1.0,
        T4=0.4,
        V100=1.2,
        MI300X=2.5,
        MI325X=3.0,
    ),
    as_of=date(2026, 11, 1),
    power=PowerPrice(0.12, 1.3),
)
"""Round figures, to show an order of magnitude: `source` calls them assumed wherever they count."""
