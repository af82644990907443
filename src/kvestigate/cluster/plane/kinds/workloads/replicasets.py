"""ReplicaSets. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec import default_pod_template
from kvestigate.cluster.plane.kinds.workloads import shared
from kvestigate.cluster.plane.model.kind import Object, Scene
from kvestigate.kube.causes import Causes

_COUNTERS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
)
_AT_MOST_REPLICAS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


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

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        status = new["status"]
        return [
            *shared.validate_counters(status, _COUNTERS),
            *shared.validate_at_most_replicas(status, _AT_MOST_REPLICAS),
            *shared.validate_available(status, "readyReplicas"),
        ]


def _spec(spec: Object, before: Object | None = None) -> Causes:
    yield from checks.not_negative("spec.replicas", spec["replicas"])
    yield from checks.not_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
    # The server says "deployment" here, too.
    yield from shared.validate_selector(spec, "deployment")
    yield from shared.validate_replicated_template(spec, before)
