"""Which processor cores the processes of a bench run on.

With a client that waits for each answer, the kernel may put it and its server on one core or on
two, and that decides more than what is measured. Where it cannot be told, it decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_CORES = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


@contextmanager
def apart(server: Sequence[int]) -> Iterator[None]:
    """The first core is the server's; this process and those it starts have the others."""
    if len(_CORES) < 2:
        yield
        return
    first = min(_CORES)
    _confine(server, {first})
    with _on(_CORES - {first}):
        yield


@contextmanager
def everywhere() -> Iterator[None]:
    """This process and those it starts may use all cores, as a server of many threads should."""
    if not _CORES:
        yield
        return
    with _on(_CORES):
        yield


@contextmanager
def _on(cores: frozenset[int]) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    _confine([os.getpid()], cores)
    try:
        yield
    finally:
        _confine([os.getpid()], before)


def _confine(pids: Sequence[int], cores: set[int] | frozenset[int]) -> None:
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)
