"""A task on the screen, redrawn as it changes."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit_log

if TYPE_CHECKING:
    from kvestigate.jobs.answers import TaskStatus, TaskView
    from kvestigate.jobs.interface import Launcher

_TICK = 1.0
"""Seconds after which the elapsed time is drawn anew."""


async def show_live(options: GlobalOptions, launcher: Launcher, task_id: str) -> TaskStatus | None:
    """Draw until the task has ended. How it ended; None if it is gone."""
    terminal = sys.stdout.isatty() and options.output not in ("json", "yaml")
    screen = _Screen() if terminal else None
    view: TaskView | None = None
    async with aclosing(launcher.watch(task_id)) as views:
        coming = asyncio.ensure_future(anext(views, None))
        try:
            while True:
                await asyncio.wait({coming}, timeout=_TICK if screen is not None else None)
                if coming.done():
                    new = coming.result()
                    if new is None:
                        break
                    view = new
                    coming = asyncio.ensure_future(anext(views, None))
                    if screen is None:
                        _print_line(options, view)
                if screen is not None and view is not None:
                    screen.draw(view)
        finally:
            coming.cancel()
            await asyncio.wait({coming})
    return None if view is None else view.task


def _print_line(options: GlobalOptions, view: TaskView) -> None:
    """One change a line, for those who read it later."""
    from kvestigate.jobs.rendering import live_line

    if options.output == "json":
        import msgspec

        sys.stdout.write(msgspec.json.encode(view).decode() + "\n")
    else:
        emit_log(live_line(view) + "\n")
    sys.stdout.flush()


class _Screen:
    def __init__(self) -> None:
        self._lines = 0

    def draw(self, view: TaskView) -> None:
        from kvestigate.jobs.rendering import live_blocks
        from kvestigate.render.plain import to_text

        now = datetime.now(UTC).replace(tzinfo=None)
        text = to_text(live_blocks(view, now))
        up = f"\x1b[{self._lines}A" if self._lines else ""
        sys.stdout.write(f"{up}\x1b[J{text}")
        sys.stdout.flush()
        self._lines = text.count("\n")
