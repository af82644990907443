"""The manifest of the node-access DaemonSet."""

from __future__ import annotations

from importlib import resources


def manifest() -> str:
    """YAML, with a comment on the access that it gives."""
    return resources.files("kvestigate.node_access").joinpath("node-access.yaml").read_text()
