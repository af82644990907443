"""The kubeconfig of one plane, made from the one of its server. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvestigate.errors import ConfigError, InputError
from kvestigate.kube.names import label_problems

ROOT = "root"
_PREFIX = "/clusters/"


def for_plane(server: Mapping[str, Any], plane: str) -> dict[str, Any]:
    """As `server`'s current context, but for the API of `plane`."""
    if problems := label_problems(plane):
        raise InputError(f"{plane!r} cannot be the id of a plane: {problems[0]}", where="ID")
    current = server.get("current-context") or ""
    context = _entry(server.get("contexts") or (), current, "context")
    cluster = _entry(server.get("clusters") or (), context.get("cluster") or "", "cluster")
    user = _entry(server.get("users") or (), context.get("user") or "", "user")
    name = f"kvestigate-{plane}"
    url = str(cluster.get("server") or "").partition(_PREFIX)[0].rstrip("/")
    if plane != ROOT:
        url = f"{url}{_PREFIX}{plane}/control-plane"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {**cluster, "server": url}}],
        "users": [{"name": context["user"], "user": dict(user)}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": context["user"]}}],
        "current-context": name,
    }


def _entry(entries: Sequence[Mapping[str, Any]], name: str, kind: str) -> Mapping[str, Any]:
    for entry in entries:
        if entry.get("name") == name:
            found: Mapping[str, Any] = entry.get(kind) or {}
            return found
    raise ConfigError(f"the server's kubeconfig has no {kind} {name!r}")
