"""Live usage, as metrics-server tells it."""

from __future__ import annotations

from msgspec import field

from kvestigate.kube.views.meta import Metadata, View


class NodeMetrics(View, frozen=True):
    metadata: Metadata = Metadata()
    usage: dict[str, str] = field(default_factory=dict)


class ContainerMetrics(View, frozen=True):
    name: str = ""
    usage: dict[str, str] = field(default_factory=dict)


class PodMetrics(View, frozen=True):
    metadata: Metadata = Metadata()
    containers: tuple[ContainerMetrics, ...] = ()
