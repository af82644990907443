"""What a group of tasks raises, for callers who expect one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kvestigate.errors import KvestigateError


@contextmanager
def one_failure() -> Iterator[None]:
    """Around a task group: of errors that users are told, raise the first instead of the group.

    `except*` would do, but before Python 3.11.4 it raises a group whatever one raises in it.
    """
    try:
        yield
    except ExceptionGroup as group:
        known, others = group.split(KvestigateError)
        if known is None or others is not None:
            raise
        raise known.exceptions[0] from None
