"""A line for each target of a fan-out as it ends, and on a terminal whom we wait for."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from kvestigate.fanout.results import progress_line
from kvestigate.render.blocks import one_line, printable

if TYPE_CHECKING:
    from kvestigate.fanout.results import TargetResult

_ERASE = "\r\x1b[K"
_EVERY = 1.0


class Lines:
    """`✓ node-08 exit=0 1.3s`, and below `waiting for node-03 (12 s)`."""

    def __init__(self, stream: TextIO, width: int) -> None:
        self._stream = stream
        self._width = width
        """0 where nothing can be erased, and so no waiting be shown."""
        self._running: dict[str, float] = {}
        self._shown = False

    def begun(self, target: str, /) -> None:
        self._running[target] = time.monotonic()

    def ended(self, result: TargetResult, /) -> None:
        self._running.pop(result.target.name, None)
        self.erase()
        self._stream.write(f"{one_line(printable(progress_line(result)))}\n")
        self._stream.flush()

    def show(self) -> None:
        """Whom we wait for, the longest first."""
        if not self._running or not self._width:
            return
        now = time.monotonic()
        names = (f"{name} ({now - since:.0f} s)" for name, since in self._running.items())
        line = f"waiting for {', '.join(names)}"
        self._stream.write(f"{_ERASE}{printable(line)[: self._width - 1]}")
        self._stream.flush()
        self._shown = True

    def erase(self) -> None:
        if self._shown:
            self._stream.write(_ERASE)
            self._shown = False


@contextmanager
def watching() -> Iterator[Lines]:
    """On stderr: what a command gives is on stdout."""
    terminal = sys.stderr.isatty()
    lines = Lines(sys.stderr, shutil.get_terminal_size().columns if terminal else 0)
    ticking = asyncio.create_task(_tick(lines))
    try:
        yield lines
    finally:
        ticking.cancel()
        lines.erase()


async def _tick(lines: Lines) -> None:
    while True:
        await asyncio.sleep(_EVERY)
        lines.show()
