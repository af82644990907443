"""The node-access DaemonSet, to be applied by whoever owns the cluster."""

from __future__ import annotations

from importlib import resources


def manifest() -> str:
    """YAML, with a comment on what it opens."""
    return resources.files("kvestigate.node_access").joinpath("node-access.yaml").read_text()
