"""What a server puts up with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kvestigate.http.message import Headers, Sink


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    header_count: int = 100
    header_bytes: int = 64 * 1024
    """Request line and header fields together; more is 431."""
    body_bytes: int = 3 * 1024 * 1024
    """A request's body; more is 413."""
    body_of: Callable[[Headers], int] | None = None
    """How much less it may be with these header fields, before any of it is read."""
    sink_of: Callable[[Headers], Sink | None] | None = None
    """What takes the body of a request with these header fields; None: it is kept as bytes."""
    pipeline: int = 64
    """Requests taken from a connection ahead of their turn, give or take one segment."""
    handshake_timeout: float = 10.0
    head_timeout: float = 10.0
    """From a request's first byte, or a connection's opening, to the end of the header."""
    body_timeout: float = 60.0
    """From the end of the header to the end of the body."""
    sink_rate: float = 64 * 1024
    """Bytes a second of a body for a sink: as much more time as these take it may take."""
    idle_timeout: float = 90.0
    """Between two requests of a connection."""
    write_timeout: float = 30.0
    """A client that takes nothing for so long is cut off."""
    linger: float = 1.0
    """How long the rest of a refused request is read and dropped, so that the refusal arrives."""
    write_buffer: int = 256 * 1024
    """Unsent bytes of a connection beyond which its stream is not asked for more."""
    gzip_min: int = 128 * 1024
    """The smallest body worth compressing."""
    websocket_message: int = 32 * 1024 * 1024

    @property
    def tick(self) -> float:
        """How often a connection looks at its deadline, so that none is noticed late."""
        return min(self.head_timeout, self.body_timeout, self.idle_timeout, self.write_timeout)
