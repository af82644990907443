"""References to container images, as far as the API server reads them. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"

_REFERENCE = re.compile(
    rf"(?:(?P<domain>{_DOMAIN})/)?(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    rf"(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
)
_NAME_MAX = 255
_IDENTIFIER = re.compile("[a-f0-9]{64}")


@lru_cache(maxsize=4096)
def tag_of(image: str) -> str:
    """The tag an image is pulled by: `latest` if neither tag nor digest says otherwise.

    Empty for a digest without a tag, and for what is no reference at all.
    """
    match = _REFERENCE.fullmatch(image)
    if match is None or _IDENTIFIER.fullmatch(image) or match.end("path") > _NAME_MAX:
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


def pull_policy(image: str) -> str:
    """The policy of a container that states none."""
    return "Always" if tag_of(image) == "latest" else "IfNotPresent"
