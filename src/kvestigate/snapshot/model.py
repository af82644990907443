"""One cluster at one moment: what was read, and what could not be read. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

from kvestigate.snapshot.gaps import Gap
from kvestigate.snapshot.prices import DEFAULT, Prices
from kvestigate.snapshot.source import Listing, Source

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Snapshot:
    captured_at: datetime
    """UTC."""
    listed: dict[Source[Any], tuple[Any, ...]] = field(default_factory=dict)
    gaps: dict[Source[Any], Gap] = field(default_factory=dict)
    """Sources of which nothing could be read."""
    parts: dict[Source[Any], tuple[Gap, ...]] = field(default_factory=dict)
    """What is missing of sources that were read in part; those are in `listed`, too."""
    namespace: str = ""
    """The only namespace that was read; empty: all."""
    last_log_lines: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """(namespace, pod, container) -> the last log line of the container's previous run. Empty
    unless a second step of collecting filled it, with `dataclasses.replace`."""
    prices: Prices = DEFAULT
    """What figures about money are computed with."""
    _derived: dict[Callable[[Snapshot], Any], Any] = field(default_factory=dict, init=False)

    def of(self, source: Source[T]) -> tuple[T, ...]:
        """The items of a source that the snapshot was taken of; empty if it could not be read."""
        if source in self.gaps:
            return ()
        return cast("tuple[T, ...]", self.listed[source])

    def known(self, source: Source[T]) -> tuple[T, ...] | None:
        """The items of a source; None if it could not be read."""
        return None if source in self.gaps else self.of(source)

    @property
    def objects(self) -> int:
        """How many API objects were read."""
        return sum(
            len(items) for source, items in self.listed.items() if isinstance(source, Listing)
        )

    def knows(self, *sources: Source[Any]) -> bool:
        """Whether all of `sources` could be read."""
        return not any(source in self.gaps for source in sources)

    def missing(self, sources: Iterable[Source[Any]]) -> tuple[Gap, ...]:
        """What could not be read of `sources`, in whole or in part."""
        gaps = (
            gap
            for source in sources
            for gap in ((self.gaps[source],) if source in self.gaps else self.parts.get(source, ()))
        )
        return tuple(dict.fromkeys(gaps))

    def derived(self, from_snapshot: Callable[[Snapshot], T]) -> T:
        """The result of a pure function of this snapshot, computed once."""
        if from_snapshot not in self._derived:
            self._derived[from_snapshot] = from_snapshot(self)
        return cast("T", self._derived[from_snapshot])
