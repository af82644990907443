"""Power, waste and forecasts are arithmetic, and add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.optimize.activity import GpuWindow, gpu_window
from kvestigate.optimize.energy import energy, power, spread, waste
from kvestigate.optimize.smi import Reading


def gpu(utilization: float, memory: float, watts: float | None) -> GpuWindow:
    return gpu_window([Reading(0, "GPU", utilization, 0.0, memory, 97887.0, 40.0, watts, 600.0)])


IDLE, LOADED, BUSY = gpu(0, 4, 30), gpu(0, 90_000, 85), gpu(100, 90_000, 400)


def test_a_year_has_8766_hours() -> None:
    year = energy(38_400)
    assert (round(year.month / 1000, 2), round(year.quarter / 1000, 2)) == (28.05, 84.15)
    assert round(year.year / 1000, 2) == 336.61


def test_waste_is_what_loaded_gpus_draw_beyond_idle_ones() -> None:
    found = waste([IDLE, gpu(0, 4, 40), LOADED, LOADED, BUSY])
    assert found is not None
    assert (found.baseline, found.baseline_gpus) == (35, 2)
    assert (found.gpus, found.drawn, found.watts) == (2, 170, 100)


@pytest.mark.parametrize("gpus", [[], [LOADED], [BUSY, LOADED], [gpu(0, 4, None), LOADED]])
def test_without_an_idle_gpu_waste_is_not_known(gpus: list[GpuWindow]) -> None:
    assert waste(gpus) is None
    assert power(gpus).forecast.recoverable is None


def test_loaded_gpus_that_draw_less_than_idle_ones_waste_nothing() -> None:
    found = waste([gpu(0, 4, 100), LOADED])
    assert found is not None
    assert found.watts == 0


def test_gpus_with_mig_count_for_power_and_energy() -> None:
    divided = gpu_window([Reading(0, "GPU", None, None, 9.0, 81920.0, 40.0, 250.0, 400.0)])
    found = power([divided, BUSY])
    assert (found.drawn, found.limit) == (650, 1000)
    assert found.by_activity == {"saturated": 400, "unknown": 250}
    assert found.forecast.observed.year == energy(650).year


def test_the_spread_of_nothing_and_of_one() -> None:
    assert spread([None]) is None
    one = spread([5.0, None])
    assert one is not None
    assert (one.min, one.max, one.mean, one.median, one.stddev, one.count) == (5, 5, 5, 5, 0, 1)


@given(
    st.lists(
        st.builds(
            gpu,
            st.floats(0, 100),
            st.sampled_from((4.0, 50_000.0)),
            st.one_of(st.none(), st.floats(0, 600)),
        )
    )
)
def test_the_parts_make_up_the_whole(gpus: list[GpuWindow]) -> None:
    found = power(gpus)
    assert sum(found.by_activity.values()) == pytest.approx(found.drawn)
    forecast = found.forecast
    parts = (forecast.productive, forecast.idle, forecast.reserved_idle)
    assert sum(it.year for it in parts) == pytest.approx(forecast.observed.year)
    assert forecast.observed.year <= forecast.ceiling.year + 1e-6
    if forecast.recoverable is not None:
        assert 0 <= forecast.recoverable.year <= forecast.reserved_idle.year + 1e-6
