"""The status of Jobs: transitions that make no sense are refused. Pure.

Controllers of others write it too (`managedBy`), and find their mistakes here. A rule applies only
to a change of what it is about, so that a status that was bad already does not stand in the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.workloads.job_policies import count_indexes
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.errors import InputError
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause, Causes

_COUNTERS = ("active", "succeeded", "failed", "ready", "terminating")
_CONDITIONS = "status.conditions"
_LONGEST = 1 << 13
"""Characters of indexes that are judged: to read more would hold up the requests of others."""
_INDEX = re.compile(r"\d{1,10}", re.ASCII)


def holds(job: Object, condition: str, status: str = "True") -> bool:
    return any(
        each.get("type") == condition and each.get("status") == status
        for each in job["status"].get("conditions") or ()
    )


def finished(job: Object) -> bool:
    return holds(job, "Complete") or holds(job, "Failed")


def validate(new: Object, old: Object) -> Causes:
    status = new["status"]
    for name in _COUNTERS:
        yield from checks.not_negative(f"status.{name}", status.get(name, 0))
    yield from _uncounted(status.get("uncountedTerminatedPods") or {})
    yield from _outcome(new, old)
    yield from _completion_time(new, old)
    yield from _targets(new, old)
    yield from _at_the_end(new, old)
    yield from _indexes(new, old)
    yield from _counts(new, old)
    yield from _success_criteria(new)
    yield from _transitions(new, old)


def _impossible(field: str, why: str) -> Cause:
    return Cause("FieldValueInvalid", field, f"Invalid value: {why}")


def _changed(new: Object, old: Object, *fields: str) -> bool:
    return any(new["status"].get(field) != old["status"].get(field) for field in fields)


def _flipped(new: Object, old: Object, *conditions: str) -> bool:
    return any(holds(new, condition) != holds(old, condition) for condition in conditions)


def _uncounted(pods: Object) -> Causes:
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(pods.get(name) or ()):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                yield causes.invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield causes.duplicate(path, uid)
            seen.add(uid)


def _outcome(new: Object, old: Object) -> Causes:
    complete = holds(new, "Complete")
    if complete and holds(new, "Failed") and _flipped(new, old, "Complete", "Failed"):
        yield _impossible(_CONDITIONS, "cannot set Complete=True and Failed=true conditions")
    target = "FailureTarget"
    if complete and holds(new, target) and _flipped(new, old, "Complete", target):
        yield _impossible(_CONDITIONS, "cannot set Complete=True and FailureTarget=true conditions")


def _completion_time(new: Object, old: Object) -> Causes:
    status, complete = new["status"], holds(new, "Complete")
    start, end = status.get("startTime"), status.get("completionTime")
    if _flipped(new, old, "Complete") or _changed(new, old, "completionTime"):
        path = "status.completionTime"
        if end is not None and not complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            yield causes.invalid(path, end, why)
        if end is None and complete:
            yield causes.required(path, "completionTime is required for Complete jobs")
    if _changed(new, old, "startTime", "completionTime") and start and end and end < start:
        yield causes.invalid("status.completionTime", end, "must be equal to or after `startTime`")


def _targets(new: Object, old: Object) -> Causes:
    failed = _flipped(new, old, "Failed") or _changed(new, old, "failedIndexes")
    if failed and holds(new, "Failed") and not holds(new, "FailureTarget"):
        why = "cannot set Failed=True condition without the FailureTarget=true condition"
        yield _impossible(_CONDITIONS, why)
    completed = _flipped(new, old, "Complete", "SuccessCriteriaMet")
    if completed and holds(new, "Complete") and not holds(new, "SuccessCriteriaMet"):
        why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield _impossible(_CONDITIONS, why)


def _at_the_end(new: Object, old: Object) -> Causes:
    if not finished(new):
        return
    status, ended = new["status"], not finished(old)
    active = status.get("active", 0)
    if active > 0 and (ended or _changed(new, old, "active")):
        yield causes.invalid("status.active", active, "active>0 is invalid for finished job")
    nothing_to_do = new["spec"]["suspend"] and new["spec"].get("completions") == 0
    started = _changed(new, old, "startTime")
    if "startTime" not in status and (ended or started) and not nothing_to_do:
        yield causes.required("status.startTime", "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    recounted = _changed(new, old, "uncountedTerminatedPods")
    if any(uncounted.values()) and (ended or recounted):
        path = "status.uncountedTerminatedPods"
        yield causes.invalid(path, uncounted, "must be empty for finished job")


def _indexes(new: Object, old: Object) -> Causes:
    status, spec = new["status"], new["spec"]
    completions, limit = spec.get("completions"), spec.get("backoffLimitPerIndex")
    done, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    if len(done) + len(failed or "") > _LONGEST:
        return
    redone, refailed = _changed(new, old, "completedIndexes"), _changed(new, old, "failedIndexes")
    if redone and completions is not None:
        yield from _format("completedIndexes", done, completions)
    if refailed and completions is not None and limit is not None and failed is not None:
        yield from _format("failedIndexes", failed, completions)
    if redone and done and spec["completionMode"] != "Indexed":
        why = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield causes.invalid("status.completedIndexes", done, why)
    if refailed and limit is None and failed is not None:
        why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield causes.invalid("status.failedIndexes", failed, why)
    judged = (redone or refailed) and completions is not None and failed is not None
    if judged and (common := _overlap(done, failed)) is not None:
        why = f"failedIndexes and completedIndexes overlap at index: {common}"
        yield causes.invalid("status.failedIndexes", failed, why)


def _format(name: str, text: str, completions: int) -> Causes:
    try:
        count_indexes(text, completions)
    except InputError as error:
        why = f"error parsing {name}: {error.message}"
        yield causes.invalid(f"status.{name}", text, why)


def _overlap(done: str, failed: str) -> int | None:
    """The first index that is in both texts."""
    pending = sorted(_intervals(failed), reverse=True)
    for start, end in sorted(_intervals(done)):
        while pending and pending[-1][1] < start:
            pending.pop()
        if pending and pending[-1][0] <= end:
            return max(start, pending[-1][0])
    return None


def _intervals(text: str) -> Iterator[tuple[int, int]]:
    """The intervals in a text; malformed parts are skipped, as they are reported elsewhere."""
    for interval in text.split(","):
        first, _, last = interval.partition("-")
        if _INDEX.fullmatch(first) and _INDEX.fullmatch(last or first):
            yield int(first), int(last or first)


def _counts(new: Object, old: Object) -> Causes:
    status, ended = new["status"], finished(new) and not finished(old)
    terminating, ready = status.get("terminating"), status.get("ready")
    if terminating and finished(new) and (ended or _changed(new, old, "terminating")):
        why = "terminating>0 is invalid for finished job"
        yield causes.invalid("status.terminating", terminating, why)
    moved = _changed(new, old, "ready", "active")
    if moved and ready is not None and ready > status.get("active", 0):
        yield causes.invalid("status.ready", ready, "cannot set more ready pods than active")


def _success_criteria(new: Object) -> Causes:
    if holds(new, "SuccessCriteriaMet"):
        for other in ("Failed", "FailureTarget"):
            if holds(new, other):
                why = f"cannot set SuccessCriteriaMet=True and {other}=true conditions"
                yield _impossible(_CONDITIONS, why)
    elif "successPolicy" in new["spec"] and holds(new, "Complete"):
        why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield _impossible(_CONDITIONS, why)


def _transitions(new: Object, old: Object) -> Causes:
    for condition in ("Failed", "Complete", "FailureTarget"):
        if holds(old, condition) and not holds(new, condition):
            why = f"cannot disable the terminal {condition}=True condition"
            yield _impossible(_CONDITIONS, why)
    yield from _falling(new, old)
    start, end = new["status"].get("startTime"), new["status"].get("completionTime")
    if end and old["status"].get("completionTime") not in (None, end):
        yield causes.invalid("status.completionTime", end, checks.IMMUTABLE)
    resuming = holds(old, "Suspended") and holds(new, "Suspended", "False")
    restarted = old["status"].get("startTime") not in (None, start)
    if restarted and not resuming and not new["spec"]["suspend"]:
        why = "field is immutable for unsuspended job once set"
        yield causes.invalid("status.startTime", start, why)
    met, was_met = holds(new, "SuccessCriteriaMet"), holds(old, "SuccessCriteriaMet")
    if was_met and not met:
        yield _impossible(_CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition")
    if holds(old, "Complete") and not was_met and met:
        why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield _impossible(_CONDITIONS, why)


def _falling(new: Object, old: Object) -> Causes:
    failed, succeeded = new["status"].get("failed", 0), new["status"].get("succeeded", 0)
    if failed < old["status"].get("failed", 0):
        yield causes.invalid("status.failed", failed, "cannot decrease the failed counter")
    spec = new["spec"]
    elastic = spec["completionMode"] == "Indexed" and (
        spec.get("completions") == spec.get("parallelism")
    )
    if succeeded < old["status"].get("succeeded", 0) and not elastic:
        yield causes.invalid("status.succeeded", succeeded, "cannot decrease the succeeded counter")
