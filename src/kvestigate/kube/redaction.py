"""Secrets as something that can be compared and not used. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

_SECRET_NAME = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|(api|access|private|signing)_?key", re.I
)


def fingerprint(secret: str | bytes) -> str:
    """`sha256:1f3a09b2c4d5`: equal for equal secrets.

    For keys, tokens and certificates only: what people think up could be guessed from it.
    """
    data = secret.encode() if isinstance(secret, str) else secret
    return f"sha256:{hashlib.sha256(data).hexdigest()[:12]}"


def sized(encoded: object) -> str:
    """`(12 bytes)`: all that is told of a value in a Secret's `data`."""
    try:
        return f"({len(base64.b64decode(str(encoded), validate=True))} bytes)"
    except (ValueError, binascii.Error):
        return "(hidden)"


def names_a_secret(name: str) -> bool:
    """Whether a variable of that name probably holds one: `DB_PASSWORD`, `API_KEY`."""
    return _SECRET_NAME.search(name) is not None
