"""Paths made of texts that others wrote, agents above all: none leads out of where it belongs."""

from __future__ import annotations

import re
from urllib.parse import quote

from kvestigate_client.failures import Invalid

_VERSION = re.compile(r"(?:[a-z0-9][a-z0-9.-]*/)?[a-z0-9]+")
"""`v1`, `apps/v1`"""


def segment(text: str) -> str:
    """One segment of a path."""
    # A server takes an escaped slash for a slash: `web/status` would be another resource. Dots
    # would lead to another plane.
    if not text or text in (".", "..") or "/" in text or "%" in text or not text.isprintable():
        raise Invalid(f"{text!r} is no name")
    return quote(text, safe="")


def api_root(version: str) -> str:
    """Where an apiVersion is served, below a plane."""
    if not _VERSION.fullmatch(version):
        raise Invalid(f"{version!r} is no apiVersion")
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
