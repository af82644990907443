"""ControllerRevisions: what a workload was, kept as it was. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause


class ControllerRevisionKind(Kind):
    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        found = list(checks.not_negative("revision", obj.get("revision", 0)))
        data = obj.get("data")
        if data is None:
            found.append(causes.required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            found.append(causes.required("data", "data must be a valid JSON object"))
        return found

    def validate_update(self, new: Object, old: Object, scene: Scene) -> list[Cause]:
        return list(checks.immutable("data", new.get("data"), old.get("data")))
