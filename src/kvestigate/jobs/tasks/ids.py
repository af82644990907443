"""The names that tasks and volumes are given."""

from __future__ import annotations

import re
import secrets
import string

_ALPHABET = string.ascii_lowercase + string.digits
_ID = re.compile(r"[a-z0-9]{8}")


def new_id() -> str:
    """Eight characters that nobody can guess or has had before."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None
