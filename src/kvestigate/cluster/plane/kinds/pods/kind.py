"""Pods: defaults, the few fields that may change, and their graceful end."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.cluster.plane.kinds.pods.parts import (
    EPHEMERAL,
    RESIZE,
    keep_part,
    validate_ephemeral,
    validate_resize,
)
from kvestigate.cluster.plane.kinds.pods.qos import qos_class
from kvestigate.cluster.plane.kinds.pods.status import keep_known, validate_pod_status
from kvestigate.cluster.plane.kinds.pods.update import validate_pod_update
from kvestigate.cluster.plane.kinds.podspec.annotations import validate_pod_annotations
from kvestigate.cluster.plane.kinds.podspec.defaults import (
    default_pod_spec,
    open_host_ports,
    request_limits,
)
from kvestigate.cluster.plane.kinds.podspec.pod_level import default_pod_level
from kvestigate.cluster.plane.kinds.podspec.spec import validate_pod_spec
from kvestigate.cluster.plane.kinds.podspec.warnings import hostname_warnings, warn_of_pod
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.cluster.plane.model.metadata import timestamp
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

FINISHED = ("Succeeded", "Failed")


def _status(obj: Object, field: str) -> str:
    text: str = (obj.get("status") or {}).get(field, "")
    return text


class PodKind(Kind):
    shares_on_update = True
    warns_on_update = False
    counts_generations = True
    deletes_gracefully = True
    returns_deleted = True
    status_carries_metadata = True
    status_keeps = ("ownerReferences",)
    field_names = (
        "spec.nodeName",
        "spec.host",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    )

    def fields(self, obj: Object) -> tuple[str, ...]:
        spec, status = obj["spec"], obj.get("status") or {}
        node = spec.get("nodeName", "")
        return (
            node,
            node,  # `host` is what the field was called at first
            spec.get("restartPolicy", ""),
            spec.get("schedulerName", ""),
            spec.get("serviceAccountName", ""),
            "true" if spec.get("hostNetwork") else "false",
            status.get("phase", ""),
            status.get("podIP", ""),
            "",  # accepted, but nothing is ever compared with it
            status.get("nominatedNodeName", ""),
        )

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        default_pod_spec(spec)
        containers = [*(spec["containers"] or ()), *(spec.get("initContainers") or ())]
        request_limits(containers)
        if "resources" in spec:
            default_pod_level(spec)
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        spec.setdefault("enableServiceLinks", True)
        if spec.get("hostNetwork"):
            open_host_ports(containers)

    def default_changed(self, new: Object, old: Object) -> None:
        if new["spec"] != old["spec"]:  # what is stored has its defaults
            self.default(new)

    def on_create(self, obj: Object, scene: Scene) -> None:
        spec = obj["spec"]
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": timestamp(scene.now),
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]
        merge_label_keys(spec, obj["metadata"].get("labels") or {})

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        if scene.subresource == "status":
            keep_known(new, old)
        elif scene.subresource in (EPHEMERAL, RESIZE):
            keep_part(new, old, scene.subresource)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        meta, spec = obj["metadata"], obj["spec"]
        annotations = meta.get("annotations") or {}
        yield from validate_pod_annotations("metadata.annotations", annotations, spec)
        yield from validate_pod_spec(spec, "spec", meta)

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        if scene.subresource or new["spec"] != old["spec"]:
            yield from super().validate_changed(new, old, scene)
            return
        annotations = new["metadata"].get("annotations") or {}
        yield from validate_pod_annotations("metadata.annotations", annotations, new["spec"])
        yield from validate_pod_update(new, old)

    def validate_create(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        if spec.get("ephemeralContainers"):
            yield causes.forbidden("spec.ephemeralContainers", "cannot be set on create")
        if spec.get("nodeName") and spec.get("schedulingGates"):
            why = "cannot be set until all schedulingGates have been cleared"
            yield causes.forbidden("spec.nodeName", why)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        if scene.subresource == EPHEMERAL:
            return validate_ephemeral(new, old)
        if scene.subresource == RESIZE:
            return validate_resize(new, old)
        return validate_pod_update(new, old)

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        return validate_pod_status(new, old)

    def warnings(self, obj: Object) -> list[str]:
        return hostname_warnings(obj["metadata"].get("name", "")) + warn_of_pod(obj)

    def grace_period(self, obj: Object, requested: int | None) -> int:
        spec = obj["spec"]
        if not spec.get("nodeName") or _status(obj, "phase") in FINISHED:
            return 0
        wanted: int = (
            spec.get("terminationGracePeriodSeconds", 0) if requested is None else requested
        )
        return 1 if wanted < 0 else wanted


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_label_keys(spec: Object, labels: dict[str, str]) -> None:
    if "affinity" not in spec and "topologySpreadConstraints" not in spec:
        return
    for term in (*_affinity_terms(spec), *(spec.get("topologySpreadConstraints") or ())):
        selector = term.get("labelSelector")
        if selector is None:
            continue
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            added = [
                {"key": key, "operator": operator, "values": [labels[key]]}
                for key in term.get(field) or ()
                if key in labels
            ]
            if added:
                selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def _affinity_terms(spec: Object) -> Iterator[Object]:
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        of = affinity.get(name) or {}
        yield from of.get(_REQUIRED) or ()
        for weighted in of.get(_PREFERRED) or ():
            yield weighted["podAffinityTerm"]
