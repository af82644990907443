"""`optimize watch`: look at the GPUs again and again, and keep what was seen in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kvestigate.aio.clock import WALL, Clock
from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.errors import InputError, UsageError
from kvestigate.operation import duration, param
from kvestigate.optimize.history import append, length, look
from kvestigate.optimize.waste import read_holdings
from kvestigate.snapshot.source import Progress

SCHEMA = "kvestigate.optimize.watch/v1"
_SHORTEST = 1.0


@dataclass(frozen=True, slots=True)
class WatchOptions:
    keep: Annotated[str, param("The file to add to; `optimize waste --history` reads it.")]
    every: Annotated[float, duration("The pause between two looks.")] = 60.0
    looks: Annotated[
        int,
        param("How many looks; 0: until Ctrl-C.", metavar="COUNT", lowest=0, highest=10_000_000),
    ] = 0

    def __post_init__(self) -> None:
        if self.every < _SHORTEST:
            raise UsageError(f"--every {self.every:g}: a pause is 1 second or longer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    schema: str = SCHEMA
    file: str
    looks: int
    """Looks of this command."""
    kept: int
    """Looks that the file has."""


async def watch(
    access: Access, options: WatchOptions, progress: Progress | None = None, clock: Clock = WALL
) -> Watched:
    """Each look is in the file as soon as it is made."""
    path = Path(options.keep)
    kept = length(path)
    made = 0
    async with connect(access) as api:
        while True:
            at, _, held, served = await read_holdings(api)
            try:
                kept = append(path, look(at, held, served or {}), kept)
            except OSError as error:
                raise InputError(
                    f"cannot be written: {error.strerror}", where=options.keep
                ) from error
            made += 1
            if progress is not None:
                progress("looks", made, options.looks)
            if made == options.looks:
                return Watched(file=options.keep, looks=made, kept=kept)
            await clock.sleep(options.every)
