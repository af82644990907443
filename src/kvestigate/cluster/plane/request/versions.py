"""Resource versions in requests: which revision of a plane a client wants to see."""

from __future__ import annotations

from kvestigate.cluster.plane.store.errors import Compacted
from kvestigate.cluster.plane.store.plane import Breathe, Plane
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import ApiError, Expired, Timeout

FIELD = "resourceVersion"


def parse(text: str, field: str = "") -> int:
    """A resourceVersion as a number. The error names `field`."""
    if text.isascii() and text.isdecimal():
        return int(text)
    why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
    raise ApiError(f'{field}: Invalid value: "{text}": {why}' if field else why)


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
