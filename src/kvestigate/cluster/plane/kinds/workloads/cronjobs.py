"""CronJobs: a schedule, and a template for the jobs. Pure, but for the time zones that it looks
up in the system's database."""

from __future__ import annotations

import re
from functools import lru_cache
from zoneinfo import ZoneInfo

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.workloads import jobs, shared
from kvestigate.cluster.plane.model.kind import Object, Scene
from kvestigate.errors import InputError
from kvestigate.kube import causes, cron
from kvestigate.kube.causes import Causes

CONCURRENCY_POLICIES = ("Allow", "Forbid", "Replace")
NAME_MAX = 52
"""Names of jobs end in the time of their run, and must fit into a label."""

_is_zone_part = re.compile("(?!-)[-A-Za-z._0-9+]{1,14}").fullmatch
_NO_ZONE_IN_SCHEDULE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
_LOCAL = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"


class CronJobKind(shared.Workload):
    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        jobs.default_job_template(spec["jobTemplate"])

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        yield from _schedule("spec.schedule", spec["schedule"])
        deadline = spec.get("startingDeadlineSeconds", 0)
        yield from checks.not_negative("spec.startingDeadlineSeconds", deadline)
        if "timeZone" in spec:
            yield from _time_zone("spec.timeZone", spec["timeZone"])
        policy = spec["concurrencyPolicy"]
        yield from checks.one_of("spec.concurrencyPolicy", policy, CONCURRENCY_POLICIES)
        yield from _job_template("spec.jobTemplate.spec", spec["jobTemplate"]["spec"])
        for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
            yield from checks.not_negative(f"spec.{name}", spec[name])

    def validate_create(self, obj: Object, scene: Scene) -> Causes:
        name = obj["metadata"].get("name", "")
        if len(name) <= NAME_MAX:
            return []
        why = f"must be no more than {NAME_MAX} characters"
        return [causes.invalid("metadata.name", name, why)]

    def template_warnings(self, obj: Object) -> list[str]:
        return jobs.spec_warnings("spec.jobTemplate.spec", obj["spec"]["jobTemplate"]["spec"])


def _job_template(path: str, spec: Object) -> Causes:
    yield from jobs.validate_job(path, spec)
    if "selector" in spec:
        why = "`selector` will be auto-generated"
        yield causes.invalid(f"{path}.selector", spec["selector"], why)
    if spec.get("manualSelector"):
        yield causes.unsupported(f"{path}.manualSelector", True, ["nil", "false"])


def _schedule(path: str, schedule: str) -> Causes:
    if not schedule:
        yield causes.required(path)
        return
    try:
        cron.parse(_without_zone(schedule))
    except InputError as error:
        yield causes.invalid(path, schedule, error.message)
    if "TZ" in schedule:
        yield causes.invalid(path, schedule, _NO_ZONE_IN_SCHEDULE)


def _without_zone(schedule: str) -> str:
    if not schedule.startswith(("TZ=", "CRON_TZ=")):
        return schedule
    zone, space, rest = schedule.partition("=")[2].partition(" ")
    if not space:
        raise InputError("invalid schedule format: there is nothing after the time zone")
    if not _is_known(zone):
        raise InputError(f"provided bad location {zone}: unknown time zone {zone}")
    return rest.strip()


def _time_zone(path: str, zone: str) -> Causes:
    if not zone:
        yield causes.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    if zone.lower() == "local":
        yield causes.invalid(path, zone, _LOCAL)
    if zone != "Local" and not _is_known(zone):
        yield causes.invalid(path, zone, f"unknown time zone {zone}")


@lru_cache(maxsize=1024)
def _is_known(zone: str) -> bool:
    if not all(_is_zone_part(part) and part not in (".", "..") for part in zone.split("/")):
        return False
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # unknown, malformed, a directory
        return False
    return True
