"""ReplicationControllers and PodTemplates: the pod template at its plainest."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec import (
    default_pod_template,
    validate_pod_template,
    warn_of_template,
)
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class PodTemplateKind(Kind):
    counts_generations = True
    returns_deleted = True

    def default(self, obj: Object) -> None:
        default_pod_template(obj["template"])

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return validate_pod_template(obj["template"], "template")

    def warnings(self, obj: Object) -> list[str]:
        return warn_of_template(obj["template"], "template")


class ReplicationControllerKind(Kind):
    judges_whole = False
    counts_generations = True
    orphans_by_default = True
    status_carries_metadata = True
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
            why = "`selector` does not match template `labels`"
            yield causes.invalid("spec.template.metadata.labels", labels, why)
        yield from validate_pod_template(template, "spec.template")
        policy = template["spec"]["restartPolicy"]
        if policy != "Always":
            yield causes.unsupported("spec.template.spec.restartPolicy", policy, ["Always"])
        if "activeDeadlineSeconds" in template["spec"]:
            why = "activeDeadlineSeconds in ReplicationController is not Supported"
            yield causes.forbidden("spec.template.spec.activeDeadlineSeconds", why)

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        status = new.get("status") or {}
        for field in (*_COUNTS, "observedGeneration"):
            yield from checks.not_negative(f"status.{field}", status.get(field, 0))
        total = status.get("replicas", 0)
        for field in _COUNTS[1:]:
            if status.get(field, 0) > total:
                why = "cannot be greater than status.replicas"
                yield causes.invalid(f"status.{field}", status[field], why)
        if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
            why = "cannot be greater than readyReplicas"
            yield causes.invalid("status.availableReplicas", status["availableReplicas"], why)

    def update_warnings(self, new: Object, old: Object) -> list[str]:
        """Warnings about the old template: kube-apiserver passes old and new in the wrong order."""
        changed = new["metadata"].get("generation") != old["metadata"].get("generation")
        return warn_of_template(old["spec"]["template"], "spec.template") if changed else []

    def warnings(self, obj: Object) -> list[str]:
        problems = names.label_problems(obj["metadata"].get("name", ""))
        found = warn_of_template(obj["spec"]["template"], "spec.template")
        if not problems:
            return found
        return [
            "metadata.name: this is used in Pod names and hostnames, which can result in "
            f"surprising behavior; a DNS label is recommended: [{' '.join(problems)}]",
            *found,
        ]
