"""Schedules and when they are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.controllers.jobs import cron
from kvestigate.errors import InputError


def _next(schedule: str, after: str, zone: str | None = None) -> str:
    found = cron.parse(schedule, zone).next(datetime.fromisoformat(after).replace(tzinfo=UTC))
    return found.strftime("%Y-%m-%d %H:%M") if found else "never"


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("* * * * *", "2026-03-01 12:00:30", "2026-03-01 12:01"),
        ("*/15 * * * *", "2026-03-01 12:00", "2026-03-01 12:15"),
        ("5/20 * * * *", "2026-03-01 12:06", "2026-03-01 12:25"),
        ("0 4 * * *", "2026-03-01 12:00", "2026-03-02 04:00"),
        ("30 4 1-7 * *", "2026-03-08 00:00", "2026-04-01 04:30"),
        ("0 0 * feb *", "2026-03-01 12:00", "2027-02-01 00:00"),
        ("0 0 29 2 *", "2026-03-01 12:00", "2028-02-29 00:00"),
        ("0 9 * * mon-fri", "2026-02-28 12:00", "2026-03-02 09:00"),
        ("0 0 13 * fri", "2026-03-01 00:00", "2026-03-06 00:00"),
        ("0 0 ? * 0", "2026-03-02 00:00", "2026-03-08 00:00"),
        ("0 0 30 2 *", "2026-03-01 12:00", "never"),
        ("@hourly", "2026-03-01 12:00", "2026-03-01 13:00"),
        ("@weekly", "2026-03-02 00:00", "2026-03-08 00:00"),
        ("@every 1h30m", "2026-03-01 12:00", "2026-03-01 13:30"),
        ("1,,2 * * * *", "2026-03-01 12:00", "2026-03-01 12:01"),
        ("0 0 */2 * mon", "2026-03-01 12:00", "2026-03-02 00:00"),
        ("59 23 31 12 *", "2026-12-31 23:59", "2027-12-31 23:59"),
    ],
)
def test_when_it_is_due(schedule: str, after: str, expected: str) -> None:
    assert _next(schedule, after) == expected


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("0 9 * * *", "Europe/Berlin", "2026-01-10 00:00", "2026-01-10 08:00"),
        ("0 9 * * *", "Europe/Berlin", "2026-07-10 00:00", "2026-07-10 07:00"),
        ("0 0 * * *", "Asia/Kolkata", "2026-03-01 00:00", "2026-03-01 18:30"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-30 00:30"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 00:30"),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00", "2018-11-05 02:00"),
    ],
    ids=["winter", "summer", "half hours", "skipped hour", "repeated hour", "no midnight"],
)
def test_zones_and_their_gaps(schedule: str, zone: str, after: str, expected: str) -> None:
    assert _next(schedule, after, zone) == expected


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* * 0 * *",
        "* * * * 7",
        "5-1 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "@sometimes",
        "@every",
        "@every 5",
    ],
)
def test_what_is_no_schedule(schedule: str) -> None:
    with pytest.raises(InputError):
        cron.parse(schedule)


def test_an_unknown_zone() -> None:
    with pytest.raises(InputError, match="Mars/Olympus"):
        cron.parse("* * * * *", "Mars/Olympus")


@given(st.text(alphabet="*/,-?@ 0123456789abcdefghijklmnopqrstuvwxyz", max_size=20))
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    try:
        schedule = cron.parse(text)
    except InputError:
        return
    start = datetime(2026, 3, 1, tzinfo=UTC)
    found = schedule.next(start)
    assert found is None or found > start


@given(
    st.integers(0, 59),
    st.integers(0, 23),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]),
    st.integers(0, 700),
)
def test_the_local_time_is_the_one_that_was_asked_for(
    minute: int, hour: int, zone: str, days: int
) -> None:
    schedule = cron.parse(f"{minute} {hour} * * *", zone)
    assert isinstance(schedule, cron.Schedule)
    found = schedule.next(datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=days))
    assert found is not None
    local = found.astimezone(schedule.zone)
    assert (local.hour, local.minute) == (hour, minute)
