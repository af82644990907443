"""Values on their way into shell scripts. Pure."""

from __future__ import annotations

import shlex


def assigned(**variables: str) -> str:
    """Shell assignments, one a line."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
