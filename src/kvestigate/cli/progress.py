"""What a long reading is at, on one line of stderr; nothing where nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

_PATIENCE = 1.0
"""Seconds that need no explanation."""
_PAUSE = 0.1
_BAR = 20
"""Characters that it is made of."""
_ERASE = "\r\x1b[K"


class Counting:
    """Counts by name: `reading [####----] 50% pods 12000, nodes 500`.

    The bar is there where whoever counts knows of how much.
    """

    def __init__(
        self,
        stream: TextIO,
        width: int,
        now: Callable[[], float] = time.monotonic,
        doing: str = "reading",
    ) -> None:
        self._doing = doing
        self._stream = stream
        self._width = width
        self._counts: dict[str, int] = {}
        self._totals: dict[str, int] = {}
        self._now = now
        self._next = now() + _PATIENCE
        self._shown = False

    def __call__(self, name: str, count: int, total: int = 0, /) -> None:
        self._counts[name] = count
        if total:
            self._totals[name] = total
        self.show()

    def show(self) -> None:
        """What it is at by now, unless that was shown a moment ago."""
        now = self._now()
        if now >= self._next:
            self._next = now + _PAUSE
            self._shown = True
            counts = (f"{name} {count}" for name, count in self._counts.items() if count)
            progress = ", ".join(counts) or "..."
            line = f"{self._doing} {self._bar()}{progress}"
            self._stream.write(f"{_ERASE}{line[: self._width - 1]}")
            self._stream.flush()

    def _bar(self) -> str:
        whole = sum(self._totals.values())
        if not whole:
            return ""
        share = min(sum(self._counts[name] for name in self._totals) / whole, 1.0)
        full = round(share * _BAR)
        return f"[{'#' * full}{'-' * (_BAR - full)}] {share:.0%} "

    def erase(self) -> None:
        if self._shown:
            self._stream.write(_ERASE)
            self._stream.flush()


@contextmanager
def counting(doing: str = "reading") -> Iterator[Counting | None]:
    """A counter to hand to whoever reads; None when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    import asyncio
    import shutil

    counter = Counting(sys.stderr, shutil.get_terminal_size().columns, doing=doing)
    # A server that says nothing for a second is the very thing that people wonder about.
    silent = asyncio.get_running_loop().call_later(_PATIENCE + _PAUSE, counter.show)
    try:
        yield counter
    finally:
        silent.cancel()
        counter.erase()


@contextmanager
def waiting(doing: str) -> Iterator[Callable[[float], None] | None]:
    """Something to tell for how many seconds we have waited; None when stderr is no terminal."""
    stream = sys.stderr
    if not stream.isatty():
        yield None
        return

    def told(seconds: float) -> None:
        if seconds >= _PATIENCE:
            stream.write(f"{_ERASE}{doing}: {seconds:.0f} s")
            stream.flush()

    try:
        yield told
    finally:
        stream.write(_ERASE)
        stream.flush()


@contextmanager
def ticking(doing: str, pause: float = 1.0) -> Iterator[None]:
    """Say on a terminal what we are at, and for how long; nothing of it stays."""
    stream = sys.stderr
    if not stream.isatty():
        yield
        return
    ticker = _Ticker(stream, doing, pause)
    try:
        yield
    finally:
        ticker.end()


class _Ticker:
    def __init__(self, stream: TextIO, doing: str, pause: float) -> None:
        import asyncio

        self._stream = stream
        self._doing = doing
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._shown = False
        self._next = self._loop.call_later(pause, self._tick)

    def _tick(self) -> None:
        self._shown = True
        self._stream.write(f"{_ERASE}{self._doing}: {self._loop.time() - self._began:.0f} s")
        self._stream.flush()
        self._next = self._loop.call_later(self._pause, self._tick)

    def end(self) -> None:
        self._next.cancel()
        if self._shown:
            self._stream.write(_ERASE)
            self._stream.flush()


@contextmanager
def said_if_silent(words: str, patience: float = 3.0) -> Iterator[Callable[[], None]]:
    """Say `words` on a terminal unless the yielded function is called within `patience`."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    import asyncio

    silent = asyncio.get_running_loop().call_later(patience, _say, sys.stderr, words)
    try:
        yield silent.cancel
    finally:
        silent.cancel()


def _say(stream: TextIO, words: str) -> None:
    stream.write(f"{words}\n")
    stream.flush()
