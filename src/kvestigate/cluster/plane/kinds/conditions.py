"""Conditions of a status that are of the common type, with a reason and a time. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import Causes
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube import causes

_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
_NO_REASON = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
    f"used for validation is '{_REASON}')"
)
_REASON_MAX, _MESSAGE_MAX = 1024, 32 * 1024


def validate_conditions(path: str, conditions: Sequence[Object]) -> Causes:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, kind = f"{path}[{index}]", condition.get("type", "")
        if kind in seen:
            yield causes.duplicate(f"{where}.type", kind)
        seen.add(kind)
        yield from _condition(where, condition)


def _condition(path: str, condition: Object) -> Causes:
    yield from checks.label_key(f"{path}.type", condition.get("type", ""))
    status = condition.get("status", "")
    if status not in _STATUSES:
        yield causes.unsupported(f"{path}.status", status, _STATUSES)
    if (generation := condition.get("observedGeneration", 0)) < 0:
        why = "must be greater than or equal to zero"
        yield causes.invalid(f"{path}.observedGeneration", generation, why)
    if not condition.get("lastTransitionTime"):
        yield causes.required(f"{path}.lastTransitionTime")
    yield from _reason(f"{path}.reason", condition.get("reason", ""))
    if len(condition.get("message", "")) > _MESSAGE_MAX:
        yield causes.too_long(f"{path}.message", _MESSAGE_MAX)


def _reason(path: str, reason: str) -> Causes:
    if not reason:
        yield causes.required(path)
        return
    if not _is_reason(reason):
        yield causes.invalid(path, reason, _NO_REASON)
    if len(reason) > _REASON_MAX:
        yield causes.too_long(path, _REASON_MAX)
