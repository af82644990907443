"""The IDs of tasks and volumes."""

from __future__ import annotations

import re
import secrets
import string

_ALPHABET = string.ascii_lowercase + string.digits
_ID = re.compile(r"[a-z0-9]{8}")


def new_id() -> str:
    """Eight random characters, which are neither guessed nor repeated."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None
