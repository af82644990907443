"""ComponentStatuses: listed for those who still ask, and always none. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Kind


class ComponentStatusKind(Kind):
    deprecation = "v1 ComponentStatus is deprecated in v1.19+"
