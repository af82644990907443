"""One error instead of the ExceptionGroup of a task group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kvestigate.errors import KvestigateError


@contextmanager
def one_failure() -> Iterator[None]:
    """Around a task group: raise the first KvestigateError instead of the group.

    `except*` would do, but before Python 3.11.4 it raises a group whatever one raises in it.
    """
    try:
        yield
    except ExceptionGroup as group:
        known, others = group.split(KvestigateError)
        if known is None or others is not None:
            raise
        raise known.exceptions[0] from None
