"""From followers to sinks: every event to each lane, every mark settled after its event."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from kvestigate.collect.checkpoint import Checkpoint, Mark
from kvestigate.collect.lanes import Lane


class Collector:
    """Numbers events, and writes the checkpoint behind the slowest lane."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.events = 0
        """Events given to the lanes; also the number of the last one."""
        self._checkpoint = checkpoint
        self._lanes: Sequence[Lane] = ()
        self._pending: deque[tuple[int, Mark]] = deque()
        self._turn = asyncio.Lock()

    def attach(self, lanes: Sequence[Lane]) -> None:
        self._lanes = tuple(lanes)

    async def emit(self, line: bytes | None, mark: Mark) -> None:
        """Send a line, if there is one; its mark counts once every sink has the line."""
        # In turn: the numbers of a lane must grow even while somebody waits for room.
        async with self._turn:
            if line is not None:
                number = self.events + 1
                for lane in self._lanes:
                    await lane.put(number, line)
                self.events = number
            self._pending.append((self.events, mark))
        if line is None:
            self.settle()

    def settle(self) -> None:
        """Write the marks of all that was delivered since the last time."""
        done = min((lane.delivered for lane in self._lanes), default=self.events)
        marks: list[Mark] = []
        while self._pending and self._pending[0][0] <= done:
            marks.append(self._pending.popleft()[1])
        if marks:
            self._checkpoint.settle(marks)

    async def drain(self, seconds: float) -> bool:
        """Wait until every sink that works has everything; False if one has not in time."""
        working = [lane.empty.wait() for lane in self._lanes if not lane.failing]
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*working)
        except TimeoutError:
            return False
        return all(lane.empty.is_set() for lane in self._lanes)
