"""Bearer tokens known by their hash."""

from __future__ import annotations

import hashlib


def digest(token: str) -> str:
    """The form in which tokens are kept: sha256, hexadecimal."""
    return hashlib.sha256(token.encode()).hexdigest()
