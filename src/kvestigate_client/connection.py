"""The address and credentials of a server of planes, given or read from a kubeconfig."""

from __future__ import annotations

import base64
import binascii
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvestigate_client.failures import Invalid

TIMEOUT = 30.0
_CONNECTIONS = 100


@dataclass(frozen=True, slots=True)
class Connection:
    url: str
    """Of the server: `https://127.0.0.1:6443`"""
    token: str = field(default="", repr=False)
    ca: str | None = None
    """The only authorities to trust, PEM; the system's if None."""
    timeout: float = TIMEOUT
    """Seconds to wait for an answer."""

    @classmethod
    def from_kubeconfig(cls, path: str | Path, *, timeout: float = TIMEOUT) -> Connection:
        """As the current context of a kubeconfig says; its server's, whichever plane it names."""
        config = _read(Path(path))
        context = _entry(config, "contexts", config.get("current-context"), "context", path)
        cluster = _entry(config, "clusters", context.get("cluster"), "cluster", path)
        user = _entry(config, "users", context.get("user"), "user", path)
        url = str(cluster.get("server", "")).partition("/clusters/")[0].rstrip("/")
        if not url:
            raise Invalid(f"{path}: the cluster has no server")
        data = cluster.get("certificate-authority-data")
        try:
            ca = base64.b64decode(data, validate=True).decode() if data else None
        except (binascii.Error, UnicodeDecodeError) as error:
            raise Invalid(f"{path}: certificate-authority-data: {error}") from error
        return cls(url, str(user.get("token") or ""), ca, timeout)

    def arguments(self) -> dict[str, Any]:
        """For an httpx2 client, blocking or not."""
        import httpx2

        verify: ssl.SSLContext | bool = True
        if self.ca is not None:
            verify = ssl.create_default_context(cadata=self.ca)
        # A plane that was deleted meanwhile must not come back, empty, by a late request.
        headers = {"user-agent": "kvestigate-client", "x-plane-must-exist": "true"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        limits = httpx2.Limits(max_connections=_CONNECTIONS)
        return {"base_url": self.url, "verify": verify, "headers": headers, "limits": limits}


def _read(path: Path) -> Mapping[str, Any]:
    """kvestigate writes its kubeconfigs as JSON, which is YAML too; for others YAML is needed."""
    text = path.read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except ValueError:
        try:
            import yaml
        except ImportError:
            raise Invalid(f"{path} is not JSON; install pyyaml to read it") from None
        found = yaml.safe_load(text)
    if not isinstance(found, dict):
        raise Invalid(f"{path} is not a kubeconfig")
    return found


def _entry(
    config: Mapping[str, Any], section: str, name: Any, kind: str, path: str | Path
) -> Mapping[str, Any]:
    entries: Sequence[Mapping[str, Any]] = config.get(section) or ()
    for entry in entries:
        if entry.get("name") == name:
            found: Mapping[str, Any] = entry.get(kind) or {}
            return found
    raise Invalid(f"{path}: no {kind} is called {name!r}")
