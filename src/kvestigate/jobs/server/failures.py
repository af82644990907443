"""What the launcher's server says when it refuses. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate import errors


class _Failure(msgspec.Struct):
    detail: Any = ""


def failure(status: int, answer: bytes) -> errors.ApiError:
    """The exception for an answer other than success."""
    try:
        message = str(msgspec.json.decode(answer, type=_Failure).detail)
    except msgspec.DecodeError:
        message = ""
    return errors.from_status({"message": message}, code=status)
