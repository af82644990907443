"""Many requests at once, for scenes that need thousands of objects."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from tests.upstream.judge import Judge

_CONNECTIONS = 16


class Judged(Protocol):
    """Any server that can be spoken to."""

    def judge(self) -> Judge: ...


def everywhere(cluster: Judged, count: int, create: Callable[[Judge, int], None]) -> None:
    """`create(judge, index)` for every index below `count`, on a few connections."""

    def work(share: range) -> None:
        with cluster.judge() as judge:
            for index in share:
                create(judge, index)

    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        shares = [range(start, count, _CONNECTIONS) for start in range(_CONNECTIONS)]
        for done in [pool.submit(work, share) for share in shares]:
            done.result()
