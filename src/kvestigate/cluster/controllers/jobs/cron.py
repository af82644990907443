"""When a schedule is due, in any time zone. Pure.

What schedules may look like is `kube.cron`'s to say, so what the API server takes is what is
carried out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kvestigate.errors import InputError
from kvestigate.kube import cron

_FAR = timedelta(days=5 * 366)
"""A schedule such as 30 February never comes; nobody waits longer than this."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something is due. Build it with `parse`."""

    cron: cron.Cron
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`, in UTC."""
        at = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = at + _FAR
        while at < end:
            local = at.astimezone(self.zone)
            if local.month not in self.cron.months:
                at = self._midnight(local.year + local.month // 12, local.month % 12 + 1, 1, at)
            elif not self._is_day(local):
                later = local.date() + timedelta(days=1)
                at = self._midnight(later.year, later.month, later.day, at)
            elif local.hour not in self.cron.hours:
                at += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.cron.minutes:
                at += timedelta(minutes=1)
            else:
                return at
        return None

    def _is_day(self, local: datetime) -> bool:
        day = local.day in self.cron.days
        weekday = local.isoweekday() % 7 in self.cron.weekdays
        if self.cron.any_day or self.cron.any_weekday:
            return day and weekday
        return day or weekday

    def _midnight(self, year: int, month: int, day: int, before: datetime) -> datetime:
        # A clock that is set forward at midnight has no such time; then the day begins later.
        midnight = datetime(year, month, day, tzinfo=self.zone).astimezone(UTC)
        return midnight if midnight > before else before + timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Every:
    """`@every 1h30m`: at a fixed distance."""

    pause: timedelta

    def next(self, after: datetime) -> datetime | None:
        return after.astimezone(UTC).replace(microsecond=0) + self.pause


def parse(text: str, zone: str | None = None) -> Schedule | Every:
    """The schedule of a CronJob; without a zone it is in UTC."""
    where = _zone(zone)
    parsed = cron.parse(text)
    return Every(parsed.period) if isinstance(parsed, cron.Every) else Schedule(parsed, where)


def _zone(name: str | None) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = "use a name of the time zone database, such as Europe/Berlin"
        raise InputError(f"unknown time zone {name!r}", hint=hint) from None
