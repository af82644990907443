"""Devices that are claimed rather than counted: resource.k8s.io. Its expressions and capacities
are kept as they come. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.kube import causes
from kvestigate.kube.causes import Cause
from kvestigate.plane.kinds import checks
from kvestigate.plane.kinds.checks import Causes
from kvestigate.plane.kinds.kind import Kind, Object, Scene

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


class DeviceClassKind(Kind):
    counts_generations = True
    returns_deleted = True


class ResourceClaimKind(Kind):
    returns_deleted = True

    def default(self, obj: Object) -> None:
        default_claim(obj["spec"])

    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return list(_claim("spec", obj["spec"]))

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> list[Cause]:
        return list(checks.immutable("spec", new["spec"], old["spec"]))


class ResourceClaimTemplateKind(Kind):
    returns_deleted = True

    def default(self, obj: Object) -> None:
        default_claim(obj["spec"]["spec"])

    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return list(_claim("spec.spec", obj["spec"]["spec"]))

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> list[Cause]:
        return list(checks.immutable("spec", new["spec"], old["spec"]))


class ResourceSliceKind(Kind):
    counts_generations = True
    returns_deleted = True
    selectable = (
        ("spec.nodeName", lambda obj: obj["spec"].get("nodeName", "")),
        ("spec.driver", lambda obj: obj["spec"].get("driver", "")),
    )

    def field_refusal(self, field: str) -> str:
        kind = f"{self.resource.api_version}, Kind={self.resource.kind}"
        return f"field label not supported for {kind}: {field}"

    def validate(self, obj: Object, scene: Scene) -> list[Cause]:
        return list(_slice(obj["spec"]))


def default_claim(spec: Object) -> None:
    for request in _requests(spec):
        for exact in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if exact is not None:
                mode = exact.setdefault("allocationMode", "ExactCount")
                if mode == "ExactCount" and not exact.get("count"):
                    exact["count"] = 1


def _requests(spec: Object) -> Iterator[Object]:
    yield from spec["devices"].get("requests") or ()


def _claim(path: str, spec: Object) -> Causes:
    for index, request in enumerate(_requests(spec)):
        at = f"{path}.devices.requests[{index}]"
        yield from checks.label(f"{at}.name", request.get("name", ""))
        if "exactly" not in request and not request.get("firstAvailable"):
            why = "exactly one of `exactly` or `firstAvailable` is required"
            yield causes.required(at, why)


def _slice(spec: Object) -> Causes:
    pool = spec["pool"]
    if spec.get("driver"):
        yield from checks.subdomain("spec.driver", spec["driver"])
    else:
        yield causes.required("spec.driver")
    if not pool.get("name"):
        yield causes.required("spec.pool.name")
    count = pool.get("resourceSliceCount", 0)
    if count <= 0:
        yield causes.invalid("spec.pool.resourceSliceCount", count, checks.POSITIVE)
    if not any(spec.get(name) for name in _PLACES):
        listed = ", ".join(f"`{name}`" for name in _PLACES)
        yield causes.required("spec", f"exactly one of {listed} is required")
