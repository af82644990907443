"""Prices are read as they are written, and what is wrong with them is named."""

from __future__ import annotations

import pytest

from kvestigate.errors import InputError
from kvestigate.snapshot.prices import DEFAULT, Prices, read_prices

FILE = b"""
currency: EUR
as_of: 2026-11-01
use: reserved
power: {kwh: 0.21, overhead: 1.3}
gpus:
  H100: {on_demand: 2.80, reserved: 1.90}
  A100: {on_demand: 1.50}
  A100-SXM4-80GB: {on_demand: 1.70}
"""


def prices(text: bytes = FILE) -> Prices:
    return read_prices(text, "prices.yaml")


@pytest.mark.parametrize(
    ("model", "hourly"),
    [
        ("NVIDIA-H100-80GB-HBM3", 1.90),
        ("NVIDIA-A100-SXM4-80GB", 1.70),
        ("NVIDIA A100-PCIE-40GB", 1.50),
        ("Tesla-T4", None),
        ("", None),
    ],
)
def test_the_longest_name_that_fits_has_the_price(model: str, hourly: float | None) -> None:
    assert prices().hourly(model) == hourly


def test_on_demand_unless_reserved_is_used() -> None:
    assert prices(FILE.replace(b"use: reserved", b"")).hourly("H100") == 2.80
    assert prices().source == "reserved prices of 2026-11-01, EUR"
    assert prices().power_hourly(1000) == pytest.approx(0.273)


@pytest.mark.parametrize(
    ("model", "hourly"),
    [("NVIDIA-L40S", 1.2), ("NVIDIA-L4", 0.7), ("NVIDIA-L40", 1.0), ("AMD_Instinct_MI300X", 2.5)],
)
def test_similar_models_are_not_taken_for_each_other(model: str, hourly: float) -> None:
    assert DEFAULT.hourly(model) == hourly


def test_the_default_says_that_it_is_one() -> None:
    assert DEFAULT.source == "assumed prices of 2026-11-01, USD"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"2.80", b"free", r"gpus\.H100\.on_demand: 'free' is not an amount of money"),
        (b"2.80", b"-1", r"gpus\.H100\.on_demand: -1 is not an amount of money"),
        (b"2.80", b".inf", r"not a finite number"),
        (b"2.80", b"true", r"gpus\.H100\.on_demand: True is not an amount"),
        (b"reserved\n", b"spot\n", r"use: 'spot' is not a kind of price"),
        (b"EUR", b"euro", r"currency: 'euro' is not a currency"),
        (b"2026-11-01", b"soon", r"as_of: 'soon' is not a date"),
        (b"kwh", b"kw", r"power\.kw: no such field"),
    ],
)
def test_a_wrong_field_is_named(old: bytes, new: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prices(FILE.replace(old, new))
