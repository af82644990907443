"""What every kind of credentials offers to the transport."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from msgspec import Struct

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXEC_MODES = ("Never", "IfAvailable", "Always")

Now = Callable[[], datetime]
"""The current time, with a zone."""


def wall_now() -> datetime:
    return datetime.now(UTC)


class Credential(Struct, frozen=True):
    """What one request is sent with. Its repr names what is set, never the values."""

    token: str | None = None
    basic: tuple[str, str] | None = None
    """User name and password."""
    certificate: bytes | None = None
    """The client certificate and its chain, PEM."""
    key: bytes | None = None
    """PEM."""

    def __repr__(self) -> str:
        parts = ("token", "basic", "certificate", "key")
        return f"Credential({', '.join(part for part in parts if getattr(self, part))})"


class ExecCluster(Struct, frozen=True):
    """What a plugin that asks for it is told about the cluster."""

    server: str
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority_data: bytes | None = None
    proxy_url: str = ""
    disable_compression: bool = False
    config: Any = None
    """The cluster's extension `client.authentication.k8s.io/exec`."""

    def __repr__(self) -> str:
        return f"ExecCluster({self.server!r})"

    def as_json(self) -> dict[str, Any]:
        values: dict[str, Any] = {"server": self.server}
        if self.tls_server_name:
            values["tls-server-name"] = self.tls_server_name
        if self.insecure_skip_tls_verify:
            values["insecure-skip-tls-verify"] = True
        if self.certificate_authority_data:
            encoded = base64.b64encode(self.certificate_authority_data)
            values["certificate-authority-data"] = encoded.decode()
        if self.proxy_url:
            values["proxy-url"] = self.proxy_url
        if self.disable_compression:
            values["disable-compression"] = True
        return values | {"config": self.config}


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
