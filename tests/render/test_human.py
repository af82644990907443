"""Ages, sizes and cores read as people know them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.render.human import age, cores, counted, milliseconds, size

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (-1, "0s"),
        (0, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 59, "3h"),
        (3 * HOUR + MINUTE, "3h1m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"),
        (48 * HOUR - 1, "47h"),
        (48 * HOUR, "2d"),
        (2 * DAY + HOUR, "2d1h"),
        (3 * DAY + 4 * HOUR, "3d4h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR, "8y"),
        (20 * YEAR + 200 * DAY, "20y"),
    ],
)
def test_age_has_the_steps_of_kubectl(seconds: float, shown: str) -> None:
    assert age(seconds) == shown


@given(st.integers(min_value=0, max_value=100 * YEAR))
def test_age_never_overstates(seconds: int) -> None:
    units = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}
    told = sum(int(n) * units[unit] for n, unit in re.findall(r"(\d+)([smhdy])", age(seconds)))
    assert told <= seconds
    assert seconds < 120 or seconds - told < seconds / 2


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024 * 1024 - 1, "1.0 MiB"),
        (821_093_564_416, "764.7 GiB"),
        (5.97 * 1024**4, "6.0 TiB"),
        (2048 * 1024**6, "2048.0 EiB"),
        (-2048, "-2.0 KiB"),
    ],
)
def test_size(count: float, shown: str) -> None:
    assert size(count) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0"),
        (16, "16"),
        (0.5, "0.5"),
        (0.25, "0.25"),
        (1.001, "1.001"),
        (-0.0001, "0"),
        (100, "100"),
    ],
)
def test_cores(count: float, shown: str) -> None:
    assert cores(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0008, "0.8 ms"), (0.0123, "12 ms"), (0.9994, "999 ms"), (3.42, "3.4 s")],
)
def test_milliseconds(seconds: float, shown: str) -> None:
    assert milliseconds(seconds) == shown


@pytest.mark.parametrize(("count", "text"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods")])
def test_counts(count: int, text: str) -> None:
    assert counted(count, "pod") == text
