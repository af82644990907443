"""What is left of the counters that devices of a pool share, as devices are chosen. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kvestigate.kube.devices.holdings import Holdings
from kvestigate.kube.devices.pools import Candidate, Counters, NodePool, PoolId, consumption


class CounterBook:
    """Counts what chosen devices take, beside those that are allocated already."""

    def __init__(self, pools: Iterable[NodePool], held: Holdings) -> None:
        self._pools = {(pool.driver, pool.name): pool for pool in pools}
        self._held = held
        self._left: dict[PoolId, Counters] = {}
        """What allocated devices leave, of the pools that were asked for."""
        self._taken: dict[PoolId, Counter[tuple[str, str]]] = {}

    def suffices(self, candidate: Candidate, needs: Counters) -> bool:
        """Whether the counters allow the device, and all of them what was taken so far."""
        if not needs:
            return True
        taken = self._taken.get(candidate.pool, Counter())
        return all(
            amount >= taken.get(counter, 0) + needs.get(counter, 0)
            for counter, amount in self._left_of(candidate.pool).items()
        )

    def take(self, candidate: Candidate, needs: Counters) -> None:
        self._taken.setdefault(candidate.pool, Counter()).update(needs)

    def give_back(self, candidate: Candidate, needs: Counters) -> None:
        self._taken[candidate.pool].subtract(needs)

    def _left_of(self, id: PoolId) -> Counters:
        known = self._left.get(id)
        if known is None:
            pool = self._pools[id]
            left = Counter(pool.counters)
            for candidate in (*pool.candidates, *pool.elsewhere):
                if self._held.is_held(candidate.id):
                    left.subtract(consumption(candidate.device))
            known = self._left[id] = left
        return known
