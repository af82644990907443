"""The use of GPUs over time, in a file of one line for each look. Pure but for the file.

A file is bounded: beyond `MOST_LOOKS` lines, the older half goes. Lines that are cut off, as by a
full disk, or that come from something else are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from kvestigate.errors import InputError
from kvestigate.files import replace_file
from kvestigate.snapshot.gpus import at_work
from kvestigate.snapshot.ledger.holdings import Holding
from kvestigate.snapshot.model_servers import Serving

MOST_LOOKS = 20_000
"""Two weeks of a look each minute."""


class Use(msgspec.Struct, frozen=True, omit_defaults=True):
    """One pod at one moment; None: unknown."""

    utilization: float | None = None
    requests: int | None = None
    running: int | None = None


class Look(msgspec.Struct, frozen=True):
    at: datetime
    pods: dict[str, Use]
    """`namespace/name` -> its use; all pods that hold GPUs."""


def look(at: datetime, held: Iterable[Holding], served: Mapping[tuple[str, str], Serving]) -> Look:
    """PURE."""
    pods = {}
    for one in held:
        work = served.get((one.namespace, one.pod))
        pods[f"{one.namespace}/{one.pod}"] = Use(
            one.utilization,
            work.requests if work else None,
            (work.running or 0) + (work.waiting or 0) if work else None,
        )
    return Look(at, pods)


def idle_since(looks: Sequence[Look], pod: str) -> datetime | None:
    """PURE. From when on a pod did nothing in every look up to the last; None if it did, or if
    nothing is known."""
    since: datetime | None = None
    after: Use | None = None
    for each in reversed(looks):
        use = each.pods.get(pod)
        if use is None or not _rests(use, after):
            break
        since, after = each.at, use
    return since


def _rests(use: Use, after: Use | None) -> bool:
    """Whether a pod did nothing at one moment, and nothing from then until the next look."""
    if (use.utilization, use.requests, use.running) == (None, None, None):
        return False
    if at_work(use.utilization) or use.running:
        return False
    return after is None or after.requests is None or use.requests in (None, after.requests)


def length(path: Path) -> int:
    """How many lines a file has; 0 if it does not exist yet."""
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def load(path: Path) -> list[Look]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}",
            where=str(path),
            hint="`kvestigate optimize watch --keep FILE` writes it",
        ) from error
    looks = []
    for line in lines[-MOST_LOOKS:]:
        try:
            looks.append(msgspec.json.decode(line, type=Look))
        except msgspec.DecodeError:
            continue
    return sorted(looks, key=lambda each: each.at)


def append(path: Path, entry: Look, lines: int) -> int:
    """Add a look to the file, which has `lines`; returns how many it has then."""
    line = msgspec.json.encode(entry) + b"\n"
    if lines >= MOST_LOOKS:
        kept = path.read_bytes().splitlines(keepends=True)[-MOST_LOOKS // 2 :]
        replace_file(path, b"".join(kept) + line)
        return len(kept) + 1
    with path.open("ab") as file:
        file.write(line)
    return lines + 1
