"""ReplicaSets. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec import default_pod_template
from kvestigate.cluster.plane.kinds.workloads import shared
from kvestigate.cluster.plane.model.kind import Object, Scene
from kvestigate.kube.causes import Causes


class ReplicaSetKind(shared.Replicated):
    def default(self, obj: Object) -> None:
        obj["spec"].setdefault("replicas", 1)
        default_pod_template(obj["spec"]["template"])

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return _spec(obj["spec"])

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        return [*_spec(new["spec"], old["spec"]), *self.validate_update(new, old, scene)]

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.immutable("spec", new["spec"], old["spec"], "selector")


def _spec(spec: Object, before: Object | None = None) -> Causes:
    yield from checks.not_negative("spec.replicas", spec["replicas"])
    yield from checks.not_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    # The server says "deployment" here, too.
    yield from shared.validate_selector(spec, "deployment")
    yield from shared.validate_replicated_template(spec, before)
