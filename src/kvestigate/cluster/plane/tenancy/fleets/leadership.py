"""One of the servers that share their planes does the work; another takes over when it is gone.

Who it is stands in a Lease of the root plane, as for the controllers of Kubernetes itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any
from uuid import uuid4

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.cluster.plane.model.metadata import micro_timestamp
from kvestigate.cluster.plane.tenancy.fleets.calls import Calls

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_NAME = "kplane-fleets"

DURATION = 15
"""Seconds after which a leader that does not say a word is taken to be gone."""
PAUSE = 5.0
"""Seconds between two words of a leader, and two looks of the others."""


class Leadership:
    def __init__(self, calls: Calls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._identity = f"server-{uuid4()}"

    async def lead(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work while this server holds the lease; ends only when it is cancelled."""
        while True:
            if await self._hold():
                await self._serve(work)
            await self._clock.sleep(PAUSE)

    async def _serve(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.create_task(work(), name="fleets/leader")
        try:
            while await self._hold():
                rest = asyncio.ensure_future(self._clock.sleep(PAUSE))
                try:
                    await asyncio.wait({task, rest}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    rest.cancel()
                if task.done():
                    return
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _hold(self) -> bool:
        """Acquire or renew the lease; False if another server holds it."""
        now = self._clock.now()
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": DURATION,
            "renewTime": micro_timestamp(now),
        }
        try:
            lease = await self._calls.get(f"{_LEASES}/{_NAME}")
        except errors.NotFound:
            return await self._try(
                self._calls.create(_LEASES, {"metadata": {"name": _NAME}, "spec": spec})
            )
        except errors.ApiError:
            return False
        held = lease.get("spec") or {}
        if held.get("holderIdentity") != self._identity and _is_alive(held, now):
            return False
        version = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        change = {"metadata": version, "spec": spec}
        return await self._try(self._calls.merge(f"{_LEASES}/{_NAME}", change))

    async def _try(self, attempt: Coroutine[Any, Any, Any]) -> bool:
        try:
            await attempt
        except errors.ApiError:
            return False  # another server was faster
        return True


def _is_alive(held: dict[str, Any], now: float) -> bool:
    renewed, lasts = held.get("renewTime"), held.get("leaseDurationSeconds")
    if not renewed or not lasts:
        return False
    return bool(datetime.fromisoformat(renewed).timestamp() + lasts > now)
