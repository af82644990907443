"""The DaemonSet that gives access to the hosts. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """A privileged DaemonSet whose pods have the root of their node mounted."""

    namespace: str = "default"
    name: str = "direct-node-access"
    root: str = "/host"
    """Where its pods mount the root of the host."""
