"""Live usage, as metrics-server tells it."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from kvestigate.kube.views.meta import Metadata, View


class NodeMetrics(View, frozen=True):
    metadata: Metadata = Metadata()
    timestamp: datetime | None = None
    window: str = ""
    """How long the average is over: `20.05s`."""
    usage: dict[str, str] = field(default_factory=dict)


class ContainerMetrics(View, frozen=True):
    name: str = ""
    usage: dict[str, str] = field(default_factory=dict)


class PodMetrics(View, frozen=True):
    metadata: Metadata = Metadata()
    timestamp: datetime | None = None
    window: str = ""
    containers: tuple[ContainerMetrics, ...] = ()
