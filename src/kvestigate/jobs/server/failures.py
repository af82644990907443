"""What the launcher's server says when it refuses. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import msgspec

from kvestigate import errors

HINT = "x-hint"
"""The header with what would help, percent-encoded."""


class _Failure(msgspec.Struct):
    detail: Any = ""


def failure(status: int, answer: bytes, hint: str = "") -> errors.ApiError:
    """The exception for an answer other than success."""
    try:
        message = str(msgspec.json.decode(answer, type=_Failure).detail)
    except msgspec.DecodeError:
        message = ""
    error = errors.from_status({"message": message}, code=status)
    error.hint = unquote(hint) or error.hint
    return error
