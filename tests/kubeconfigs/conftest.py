"""Kubeconfigs to look at."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
Write = Callable[..., Path]


def config(
    cluster: Json | None = None, user: Json | None = None, name: str = "c", **top: Any
) -> Json:
    """One context `c`, with a cluster `c` and a user `c`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster or {"server": "https://one:6443"}}],
        "users": [{"name": name, "user": {"token": "opaque"} if user is None else user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    } | top


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write(config, "a.yaml")`: the file, for its owner alone."""

    def call(content: Json | str, name: str = "config") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        path.chmod(0o600)
        return path

    return call
