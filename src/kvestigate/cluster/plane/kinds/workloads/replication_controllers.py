"""ReplicationControllers and PodTemplates: the pod template at its plainest."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec import (
    default_pod_template,
    validate_pod_template,
    warn_of_template,
)
from kvestigate.cluster.plane.kinds.workloads import shared
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes


class PodTemplateKind(Kind):
    counts_generations = True
    returns_deleted = True

    def default(self, obj: Object) -> None:
        default_pod_template(obj["template"])

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return validate_pod_template(obj["template"], "template")

    def warnings(self, obj: Object) -> list[str]:
        return warn_of_template(obj["template"], "template")


class ReplicationControllerKind(shared.Workload):
    orphans_by_default = True
    selectable = (
        ("status.replicas", lambda obj: str((obj.get("status") or {}).get("replicas", 0))),
    )

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        template = spec.get("template")
        if template is None:
            return
        default_pod_template(template)
        labels = (template.get("metadata") or {}).get("labels")
        if labels:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not obj["metadata"].get("labels"):
                obj["metadata"]["labels"] = dict(labels)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        yield from checks.not_negative("spec.minReadySeconds", spec.get("minReadySeconds", 0))
        selector, template = spec.get("selector") or {}, spec.get("template")
        if not selector:
            yield causes.required("spec.selector")
        yield from checks.not_negative("spec.replicas", spec["replicas"])
        if template is None:
            yield causes.required("spec.template")
            return
        labels = (template.get("metadata") or {}).get("labels") or {}
        if selector and not selector.items() <= labels.items():
            yield causes.invalid("spec.template.metadata.labels", labels, shared.MISMATCH)
        yield from validate_pod_template(template, "spec.template")
        yield from shared.validate_runs_forever(spec, "ReplicationController")
