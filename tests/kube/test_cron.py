"""Cron schedules, as CronJobs write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.kube import cron


def parsed(text: str) -> cron.Cron:
    schedule = cron.parse(text)
    assert isinstance(schedule, cron.Cron)
    return schedule


@pytest.mark.parametrize(
    ("field", "minutes"),
    [
        ("0", {0}),
        ("5,7", {5, 7}),
        ("1-4", {1, 2, 3, 4}),
        ("*/20", {0, 20, 40}),
        ("50/4", {50, 54, 58}),
        ("10-20/5", {10, 15, 20}),
        ("*", set(range(60))),
        ("?", set(range(60))),
        ("3,10-11", {3, 10, 11}),
        (",", set()),
    ],
)
def test_a_field_lists_numbers_ranges_and_steps(field: str, minutes: set[int]) -> None:
    assert parsed(f"{field} * * * *").minutes == minutes


def test_months_and_weekdays_have_names() -> None:
    schedule = parsed("0 0 * JAN,mar mon-FRI")
    assert schedule.months == {1, 3}
    assert schedule.weekdays == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("text", "any_day", "any_weekday"),
    [
        ("0 0 * * *", True, True),
        ("0 0 1 * *", False, True),
        ("0 0 ? * 1", True, False),
        ("0 0 */2 * 1", False, False),
        ("0 0 */1 * *", True, True),
    ],
)
def test_it_is_known_which_days_are_restricted(text: str, any_day: bool, any_weekday: bool) -> None:
    schedule = parsed(text)
    assert (schedule.any_day, schedule.any_weekday) == (any_day, any_weekday)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_common_schedules_have_names(name: str, text: str) -> None:
    assert cron.parse(name) == cron.parse(text)


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("90s", timedelta(seconds=90)),
        ("2500ms", timedelta(seconds=2)),
        ("1ns", timedelta(seconds=1)),
        ("-1h", timedelta(seconds=1)),
        ("0", timedelta(seconds=1)),
    ],
)
def test_periods_are_whole_seconds_and_at_least_one(text: str, period: timedelta) -> None:
    assert cron.parse(f"@every {text}") == cron.Every(period)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("1/-2 * * * *", "negative number (-2) not allowed: -2"),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every 5", 'failed to parse duration @every 5: time: invalid duration "5"'),
        (
            "@every 9999999999h",
            'failed to parse duration @every 9999999999h: time: invalid duration "9999999999h"',
        ),
        ("@every 5y", 'failed to parse duration @every 5y: time: invalid duration "5y"'),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        cron.parse(text)
    assert caught.value.message == message
    assert caught.value.hint


@given(st.text(alphabet="0123456789*?/-,@ every.hmsjanmon", max_size=30))
def test_any_text_is_a_schedule_or_a_mistake(text: str) -> None:
    try:
        schedule = cron.parse(text)
    except InputError:
        return
    if isinstance(schedule, cron.Cron):
        assert schedule.minutes <= set(range(60))
        assert schedule.days <= set(range(1, 32))
        assert schedule.weekdays <= set(range(7))


@given(
    st.sets(st.integers(0, 59), min_size=1),
    st.sets(st.integers(0, 23), min_size=1),
    st.sets(st.integers(1, 31), min_size=1),
    st.sets(st.integers(1, 12), min_size=1),
    st.sets(st.integers(0, 6), min_size=1),
)
def test_lists_of_numbers_mean_themselves(
    minutes: set[int], hours: set[int], days: set[int], months: set[int], weekdays: set[int]
) -> None:
    fields = [frozenset(each) for each in (minutes, hours, days, months, weekdays)]
    text = " ".join(",".join(map(str, sorted(field))) for field in fields)
    schedule = parsed(text)
    assert [schedule.minutes, schedule.hours, schedule.days] == fields[:3]
    assert [schedule.months, schedule.weekdays] == fields[3:]
    assert not schedule.any_day
    assert not schedule.any_weekday


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("*/5 * * * *", datetime(2026, 3, 1, 12, 0, tzinfo=UTC)),
        ("7 * * * *", datetime(2026, 3, 1, 11, 7, tzinfo=UTC)),
        ("0 23 * * *", datetime(2026, 2, 28, 23, 0, tzinfo=UTC)),
        ("0 0 29 2 *", datetime(2024, 2, 29, tzinfo=UTC)),
        ("0 0 31 2 1", datetime(2026, 2, 23, tzinfo=UTC)),
        ("0 0 31 2 *", None),
    ],
)
def test_the_last_time_of_a_schedule(text: str, last: datetime | None) -> None:
    assert cron.last_before(parsed(text), datetime(2026, 3, 1, 12, 3, tzinfo=UTC)) == last
