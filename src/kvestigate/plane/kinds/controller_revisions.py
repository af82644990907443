"""ControllerRevisions: what a workload was, kept as it was. Pure."""

from __future__ import annotations

from kvestigate.kube import causes
from kvestigate.kube.causes import Cause
from kvestigate.plane.kinds import checks
from kvestigate.plane.kinds.kind import Kind, Object, Scene


class ControllerRevisionKind(Kind):
    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return list(checks.not_negative("revision", obj.get("revision", 0)))

    def validate_create(self, obj: Object, scene: Scene) -> list[Cause]:
        data = obj.get("data")
        if data is None:
            return [causes.required("data", "data is mandatory")]
        if not isinstance(data, dict):
            return [causes.required("data", "data must be a valid JSON object")]
        return []

    def validate_update(self, new: Object, old: Object, scene: Scene) -> list[Cause]:
        return list(checks.immutable("data", new.get("data"), old.get("data")))
