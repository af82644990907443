"""The cluster that the pod we run in belongs to, reached with its service account."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class InCluster(Struct, frozen=True):
    """What a pod finds in its environment and its service account's directory."""

    server: str
    token_file: Path
    ca: bytes | None
    namespace: str


def in_cluster(environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> InCluster | None:
    """None when we are not in a pod, or the pod has no service account token."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    token_file = directory / "token"
    if not host or not port or not token_file.is_file():
        return None
    return InCluster(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        token_file=token_file,
        ca=_read(directory / "ca.crt"),
        namespace=environ.get("POD_NAMESPACE") or _namespace(directory),
    )


def _namespace(directory: Path) -> str:
    return (_read(directory / "namespace") or b"").decode(errors="replace").strip() or "default"


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes() or None
    except OSError:
        return None
