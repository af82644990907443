"""Resource versions in requests: which revision of a plane a client wants to see."""

from __future__ import annotations

from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.store.errors import Compacted
from kvestigate.cluster.plane.store.plane import Breathe, Plane
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import ApiError, Expired, Timeout
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause

FIELD = "resourceVersion"


def parse(text: str, field: str = "") -> int:
    """A resourceVersion as a number. The error names `field`."""
    if text.isascii() and text.isdecimal():
        return int(text)
    why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
    raise ApiError(f'{field}: Invalid value: "{text}": {why}' if field else why)


def names_one(text: str) -> bool:
    """Whether an object is to be changed at one version only; zero stands for any."""
    return text.strip("0") != ""


def at_least(plane: Plane, text: str) -> None:
    """Refuse a version from the future."""
    if not text or text == "0":
        return
    wanted, present = parse(text, FIELD), plane.state.revision
    if wanted > present:
        raise Timeout(
            f"Timeout: Too large resource version: {wanted}, current: {present}",
            details={
                "causes": [
                    {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
                ],
                "retryAfterSeconds": 1,
            },
        )


def exactly(plane: Plane, revision: int) -> PlaneState:
    """The plane at one revision, or 410 when the history does not reach back."""
    at_least(plane, str(revision))
    try:
        return plane.at(revision)
    except Compacted:
        raise _too_old() from None


async def recalled(plane: Plane, revision: int, breathe: Breathe) -> PlaneState:
    """Like `exactly`, but requests of other planes run meanwhile."""
    at_least(plane, str(revision))
    try:
        return await plane.recall(revision, breathe)
    except Compacted:
        raise _too_old() from None


def _too_old() -> Expired:
    return Expired("The resourceVersion for the provided list is too old.")


EXACT, NOT_OLDER = "Exact", "NotOlderThan"
_MATCH = "resourceVersionMatch"


def check_list(info: RequestInfo) -> None:
    """Refuse options of a list that contradict each other."""
    params = info.params
    match, version = params.get(_MATCH, ""), params.get(FIELD, "")
    problems: list[Cause] = []
    if match:
        if not version:
            problems.append(_forbidden("is forbidden unless resourceVersion is provided"))
        if params.get("continue"):
            problems.append(_forbidden("is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER):
            problems.append(causes.unsupported(_MATCH, match, [EXACT, NOT_OLDER, ""]))
        if match == EXACT and version == "0":
            problems.append(_forbidden('"exact" is forbidden for resourceVersion "0"'))
    if "sendInitialEvents" in params:
        why = "sendInitialEvents is forbidden for list"
        problems.append(causes.forbidden("sendInitialEvents", why))
    if problems:
        raise causes.reject("ListOptions", "meta.k8s.io", "", problems)


def check_watch(info: RequestInfo) -> None:
    """Refuse options of a watch that contradict each other."""
    params = info.params
    match, initial = params.get(_MATCH, ""), "sendInitialEvents" in params
    problems: list[Cause] = []
    if initial and match != NOT_OLDER:
        why = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"
        problems.append(causes.forbidden(_MATCH, why))
    if match:
        if not initial:
            why = "is forbidden for watch unless sendInitialEvents is provided"
            problems.append(_forbidden(why))
        if match != NOT_OLDER:
            problems.append(causes.unsupported(_MATCH, match, [NOT_OLDER]))
        if params.get("continue"):
            problems.append(_forbidden("is forbidden when continue is provided"))
    if problems:
        raise causes.reject("ListOptions", "meta.k8s.io", "", problems)


def _forbidden(why: str) -> Cause:
    return causes.forbidden(_MATCH, f"{_MATCH} {why}")
