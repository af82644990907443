"""What kinds that make pods from a template have in common. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec import validate_pod_template, warn_of_template
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.errors import InputError
from kvestigate.kube import causes, names, selectors
from kvestigate.kube.causes import Causes
from kvestigate.kube.selectors import LabelSelector

MISMATCH = "`selector` does not match template `labels`"
_MORE_THAN_REPLICAS = "cannot be greater than status.replicas"
_SORTS = (
    "fullyLabeledReplicas",
    "updatedReplicas",
    "currentReplicas",
    "readyReplicas",
    "availableReplicas",
)


class Workload(Kind):
    """A kind whose spec has a template for pods."""

    counts_generations = True
    status_carries_metadata = True

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        """Counts are not negative, and the pods of one sort not more than all pods."""
        status = new["status"]
        for name, count in status.items():
            if isinstance(count, int):
                yield from checks.not_negative(f"status.{name}", count)
        for name in filter(status.__contains__, _SORTS):
            if status[name] > status.get("replicas", 0):
                yield causes.invalid(f"status.{name}", status[name], _MORE_THAN_REPLICAS)
        available = status.get("availableReplicas", 0)
        if available > status.get("readyReplicas", 0):
            why = "cannot be greater than readyReplicas"
            yield causes.invalid("status.availableReplicas", available, why)
        collisions, before = status.get("collisionCount", 0), old["status"].get("collisionCount")
        if before is not None and collisions < before:
            yield causes.invalid("status.collisionCount", collisions, "cannot be decremented")

    def template_warnings(self, obj: Object) -> list[str]:
        return warn_of_template(obj["spec"]["template"], "spec.template")

    def warnings(self, obj: Object) -> list[str]:
        return name_warnings(obj["metadata"]["name"]) + self.template_warnings(obj)

    def update_warnings(self, new: Object, old: Object) -> list[str]:
        changed = new["metadata"].get("generation") != old["metadata"].get("generation")
        return self.template_warnings(new) if changed else []


class Replicated(Workload):
    """A kind that keeps up a number of pods which are all alike."""

    shares_on_update = True

    def default_changed(self, new: Object, old: Object) -> None:
        if new["spec"] != old["spec"]:  # what is stored has its defaults
            self.default(new)


def name_warnings(name: str) -> list[str]:
    """A warning if the name contains a dot: pods use the name in their hostname."""
    problems = names.label_problems(name)
    if not problems:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising "
        f"behavior; a DNS label is recommended: [{' '.join(problems)}]"
    ]


def template_labels(spec: Object) -> dict[str, str] | None:
    """The labels of the pod template, sorted as error messages show them."""
    labels = (spec["template"].get("metadata") or {}).get("labels")
    return None if labels is None else dict(sorted(labels.items()))


def parse_selector(selector: Object | None) -> LabelSelector | None:
    """None if it does not parse; a selector that was not given selects nothing."""
    try:
        return selectors.from_label_selector(selector)
    except InputError:
        return None


def validate_selector(spec: Object, kind: str) -> Causes:
    """Refuse a missing or empty selector."""
    selector = spec.get("selector")
    if selector is None:
        yield causes.required("spec.selector")
        return
    yield from checks.label_selector("spec.selector", selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield causes.invalid("spec.selector", selector, f"empty selector is invalid for {kind}")


def validate_replicated_template(spec: Object, before: Object | None = None) -> Causes:
    """The template of a Deployment or ReplicaSet, whose errors name the latter.

    One that is as it was `before`, in the spec that is stored, was validated then.
    """
    if before is not None and all(spec.get(part) == before.get(part) for part in _JUDGED):
        return
    selector = parse_selector(spec.get("selector"))
    if selector is None:
        yield causes.invalid("spec.selector", spec["selector"], "invalid label selector")
        return
    if not selector.selects_everything and not selector.matches(template_labels(spec) or {}):
        path = "spec.template.metadata.labels"
        yield causes.invalid(path, template_labels(spec), MISMATCH)
    yield from validate_pod_template(spec["template"], "spec.template")
    yield from validate_runs_forever(spec, "ReplicaSet")


_JUDGED = ("template", "selector")


def validate_runs_forever(spec: Object, kind: str) -> Causes:
    pod, path = spec["template"]["spec"], "spec.template.spec"
    if pod["restartPolicy"] != "Always":
        yield causes.unsupported(f"{path}.restartPolicy", pod["restartPolicy"], ["Always"])
    if "activeDeadlineSeconds" in pod:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        yield causes.forbidden(f"{path}.activeDeadlineSeconds", why)


def is_status(scene: Scene) -> bool:
    return scene.subresource == "status"
