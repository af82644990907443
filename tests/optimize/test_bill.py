"""The bill of a probe, recomputed by hand."""

from __future__ import annotations

import pytest

from kvestigate.optimize.activity import node_window
from kvestigate.optimize.bill import bill
from kvestigate.optimize.smi import Reading
from kvestigate.snapshot.prices import GpuPrice, PowerPrice, Prices
from tests.optimize.conftest import node

PRICES = Prices({"H100": GpuPrice(2.0)}, power=PowerPrice(0.25, 1.2))


def reading(index: int, utilization: float | None, memory: float) -> Reading:
    return Reading(index, f"GPU-{index}", utilization, 0.0, memory, 80_000.0, 40.0, 100.0, 700.0)


def test_the_money_of_each_activity() -> None:
    round_ = [reading(0, 95, 9), reading(1, 0, 9000), reading(2, 0, 9), reading(3, None, 9)]
    found = bill([node_window(node("a", (4,)), [round_], 0.05)], {"a": "NVIDIA-H100"}, PRICES)
    each = 2.0 * 730.5
    assert {name: spend.month for name, spend in found.by_activity.items()} == {
        "saturated": each,
        "reserved-idle": each,
        "idle": each,
        "unknown": each,
    }
    assert (found.total.month, found.idle.month) == (4 * each, 2 * each)
    assert found.power == pytest.approx(0.4 * 730.5 * 0.25 * 1.2)


def test_a_bill_is_in_cents_and_rounded_once() -> None:
    """One GPU costs 1818.945 a month, its power 2.1915."""
    prices = Prices({"H100": GpuPrice(2.49)}, power=PowerPrice(0.01, 1.0))
    readings = [reading(index, 0, 9) for index in range(3)]
    found = bill([node_window(node("a", (3,)), [readings], 0.05)], {"a": "NVIDIA-H100"}, prices)
    assert (found.total.month, found.idle.month, found.power) == (5456.84, 5456.84, 2.19)


def test_a_model_without_a_price_is_named() -> None:
    found = bill([node_window(node("a"), [[reading(0, 0, 9)]], 0.05)], {"a": "X1"}, PRICES)
    assert (found.total.gpus, found.total.month, found.unpriced) == (1, 0, ("X1",))
