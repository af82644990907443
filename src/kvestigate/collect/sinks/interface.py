"""What a sink is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kvestigate.errors import KvestigateError


class Unavailable(KvestigateError):
    """The sink took nothing, or maybe a part; the same lines may go through later."""


class Rejected(KvestigateError):
    """The sink will never take these lines."""


class Sink(Protocol):
    """Takes lines of NDJSON, without their ends, in order."""

    @property
    def name(self) -> str:
        """In messages and metrics: `stdout`, `file`, `post`."""

    async def send(self, lines: Sequence[bytes]) -> None:
        """Returns when the lines are safe; else raises `Unavailable` or `Rejected`."""

    async def aclose(self) -> None: ...
