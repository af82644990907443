"""Contexts for tests that run the handlers of operations themselves."""

from __future__ import annotations

from kvestigate.client.access import Access
from kvestigate.operation import Context


def planning(access: Access, owner: str = "") -> Context:
    """Nothing is changed."""
    return Context(lambda: access, owner=owner)


def acting(access: Access, owner: str = "") -> Context:
    return Context(lambda: access, apply=True, owner=owner)
