"""What every kind of credentials offers to the transport."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

Now = Callable[[], datetime]
"""The current time, with a zone."""


def wall_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Credential:
    """What one request is sent with. Its repr names what is set, never the values."""

    token: str | None = field(default=None, repr=False)
    basic: tuple[str, str] | None = field(default=None, repr=False)
    """User name and password."""
    certificate: bytes | None = field(default=None, repr=False)
    """The client certificate and its chain, PEM."""
    key: bytes | None = field(default=None, repr=False)
    """PEM."""

    def __repr__(self) -> str:
        parts = ("token", "basic", "certificate", "key")
        return f"Credential({', '.join(part for part in parts if getattr(self, part))})"


class Credentials(Protocol):
    """A source of credentials that keeps them fresh. Safe for concurrent callers."""

    async def current(self) -> Credential:
        """What to send now; cheap when nothing has changed."""

    async def rejected(self, used: Credential) -> bool:
        """The server answered 401 to `used`: renew. True if a retry with `current()` may help."""

    def describe(self) -> str:
        """How this authenticates, for humans, without secrets: `token file /x/token`."""


class Fetch(Protocol):
    """One HTTP request to an identity provider."""

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        ca: bytes | None,
    ) -> tuple[int, bytes]:
        """Status and body. `ca` is the PEM bundle to trust, None for the system's."""
