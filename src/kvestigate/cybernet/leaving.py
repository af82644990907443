"""The one redactor: what agents are told of a cluster, without the secrets in it. Pure.

Operations leave out what they know to be secret (the data of a Secret). This is for the rest: a
password in an annotation, in the environment of a container, in a log or in an error. A value is
masked for its name, or for its form. What is in an agent's own workspace is its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kvestigate.kube.redaction import MASKED, masked_text, names_a_secret

_FORMS = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON Web Tokens
    r"|\bkvc_[\w-]{20,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bgh[pousr]_\w{20,}"
    # A line of a key whose first line is elsewhere: logs are handed out line by line.
    r"|(?<![\w+/=.:-])(?=[a-z0-9+/]{0,75}[A-Z])(?=[A-Z0-9+/]{0,75}[a-z])(?=[A-Za-z+/]{0,75}[0-9])"
    r"[A-Za-z0-9+/]{64,76}(?![\w+/=.:-])"
)
# A look that costs a fifteenth of masking: few texts have any of this.
_WORTH_A_LOOK = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|authori[sz]ation|cookie|key|bearer|://|-[up]\b",
    re.IGNORECASE,
)
_DEEPEST = 100


def redacted_text(text: str) -> str:
    """A text without the secrets in it."""
    text = _FORMS.sub(MASKED, text)
    return masked_text(text) if _WORTH_A_LOOK.search(text) else text


def redacted(value: Any, levels: int = _DEEPEST) -> Any:
    """A value of JSON without the secrets in it; what is nested too deeply is left out."""
    if not levels:
        return None
    if isinstance(value, str):
        return redacted_text(value)
    if isinstance(value, Mapping):
        return _object(value, levels - 1)
    if isinstance(value, list | tuple):
        return [redacted(item, levels - 1) for item in value]
    return value


def _object(value: Mapping[str, Any], levels: int) -> dict[str, Any]:
    """A variable, `{"name": "DB_PASSWORD", "value": "x"}`, is masked for the name it gives."""
    name = value.get("name")
    named = isinstance(name, str) and names_a_secret(name)
    return {
        redacted_text(key): MASKED
        if isinstance(item, str) and item and (names_a_secret(key) or (named and key == "value"))
        else redacted(item, levels)
        for key, item in value.items()
    }
