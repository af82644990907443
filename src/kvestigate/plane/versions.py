"""Resource versions in requests: which revision of a plane a client wants to see."""

from __future__ import annotations

from kvestigate.errors import BadRequest, Expired, Timeout
from kvestigate.plane.store.errors import Compacted
from kvestigate.plane.store.plane import Plane
from kvestigate.plane.store.state import PlaneState


def parse(text: str) -> int:
    if not text.isdecimal():
        raise BadRequest(f'Invalid value: "{text}": strconv.ParseUint: invalid syntax')
    return int(text)


def at_least(plane: Plane, text: str) -> None:
    """Refuse a version from the future."""
    if not text or text == "0":
        return
    wanted, present = parse(text), plane.state.revision
    if wanted > present:
        raise Timeout(
            f"Too large resource version: {wanted}, current: {present}",
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
        raise Expired("The provided resource version is too old: list again without one") from None
