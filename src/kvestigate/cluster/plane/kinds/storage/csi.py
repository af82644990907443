"""What storage drivers tell of themselves, and what they attach where. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.podspec.defaults import default_volume, round_amounts
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, quantities
from kvestigate.kube.causes import Causes

_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES = ("Persistent", "Ephemeral")
_TOKEN_SECONDS = (600, 2**32)
_NODE_ID_MAX = 256
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


class CSIDriverKind(Kind):
    counts_generations = True
    starts_generations = False
    returns_deleted = True
    updates_unconditionally = False

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.pop("preventPodSchedulingIfMissing", None)  # behind a feature gate, off by default
        spec.setdefault("attachRequired", True)
        for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
            spec.setdefault(name, False)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        policy = spec["fsGroupPolicy"]
        yield from checks.choice("spec.fsGroupPolicy", policy, _GROUP_POLICIES)
        yield from _tokens(spec.get("tokenRequests") or [])
        for mode in spec["volumeLifecycleModes"]:
            yield from checks.choice("spec.volumeLifecycleModes", mode, _LIFECYCLES)
        period = spec.get("nodeAllocatableUpdatePeriodSeconds", 10)
        if period < 10:
            why = "must be greater than or equal to 10 seconds"
            yield causes.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, why)
        in_secrets = spec.get("serviceAccountTokenInSecrets")
        if in_secrets is not None and not spec.get("tokenRequests"):
            why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            yield causes.invalid("spec.serviceAccountTokenInSecrets", in_secrets, why)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        fixed = ("attachRequired", "volumeLifecycleModes")
        return checks.immutable("spec", new["spec"], old["spec"], *fixed)

    def warnings(self, obj: Object) -> list[str]:
        spec = obj["spec"]
        if not spec.get("tokenRequests") or "serviceAccountTokenInSecrets" in spec:
            return []
        return [
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to "
            "true to prevent possible logging of tokens in volume attributes"
        ]

    def update_warnings(self, new: Object, old: Object) -> list[str]:
        changed = new["spec"].get("tokenRequests") != old["spec"].get("tokenRequests")
        return self.warnings(new) if changed else []


class CSINodeKind(Kind):
    returns_deleted = True
    updates_unconditionally = False

    def validate(self, obj: Object, scene: Scene) -> Causes:
        drivers = obj["spec"].get("drivers") or []
        seen: set[str] = set()
        for index, driver in enumerate(drivers):
            path, node = f"spec.drivers[{index}]", driver.get("nodeID", "")
            yield from checks.driver_name(f"{path}.name", driver.get("name", ""))
            if not node:
                yield causes.required(f"{path}.nodeID")
            if len(node) > _NODE_ID_MAX:
                why = f"must be {_NODE_ID_MAX} characters or less"
                yield causes.invalid(f"{path}.nodeID", node, why)
            count = (driver.get("allocatable") or {}).get("count", 0)
            yield from checks.not_negative(f"{path}.allocatable.count", count)
            if driver.get("name", "") in seen:
                yield causes.duplicate(f"{path}.name", driver.get("name", ""))
            seen.add(driver.get("name", ""))
            yield from _topology(path, driver.get("topologyKeys") or [])

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        before = {driver["name"]: driver for driver in old["spec"].get("drivers") or ()}
        for driver in new["spec"].get("drivers") or ():
            was = before.get(driver["name"], driver)
            if any(driver.get(field) != was.get(field) for field in ("nodeID", "topologyKeys")):
                yield causes.invalid("spec.drivers", driver, checks.IMMUTABLE)


class CSIStorageCapacityKind(Kind):
    updates_unconditionally = False

    def validate(self, obj: Object, scene: Scene) -> Causes:
        yield from checks.label_selector("nodeTopology", obj.get("nodeTopology"))
        yield from checks.subdomain("storageClassName", obj.get("storageClassName", ""))
        amount = obj.get("capacity", "0")
        if quantities.parse(amount).nanos < 0:
            yield causes.invalid("capacity", amount, checks.NOT_NEGATIVE)

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.immutable("", new, old, "nodeTopology", "storageClassName")


class VolumeAttachmentKind(Kind):
    returns_deleted = True
    updates_unconditionally = False

    def default(self, obj: Object) -> None:
        inline = obj["spec"]["source"].get("inlineVolumeSpec")
        if inline is not None:
            round_amounts(inline.get("capacity") or {})
            default_volume(inline)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return _attachment(obj["spec"])

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        return checks.immutable("", new, old, "spec")


def _tokens(requests: list[Object]) -> Causes:
    seen: set[str] = set()
    low, high = _TOKEN_SECONDS
    for index, request in enumerate(requests):
        path, audience = f"spec.tokenRequests[{index}]", request.get("audience", "")
        if audience in seen:
            yield causes.duplicate(f"{path}.audience", audience)
            continue
        seen.add(audience)
        seconds = request.get("expirationSeconds", low)
        if seconds < low:
            why = "may not specify a duration less than 10 minutes"
            yield causes.invalid(f"{path}.expirationSeconds", seconds, why)
        if seconds > high:
            why = "may not specify a duration larger than 2^32 seconds"
            yield causes.invalid(f"{path}.expirationSeconds", seconds, why)


def _topology(path: str, keys: list[str]) -> Causes:
    for index, key in enumerate(keys):
        if not key:
            yield causes.required(path)
        if key in keys[:index]:
            yield causes.duplicate(path, key)
        yield from checks.label_key(path, key)


def _attachment(spec: Object) -> Causes:
    source, path = spec["source"], "spec.source"
    yield from checks.driver_name("spec.attacher", spec.get("attacher", ""))
    named, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if named is None and inline is None:
        yield causes.required(path, _ONE_SOURCE)
    elif named is not None and inline is not None:
        yield causes.forbidden(path, _ONE_SOURCE)
    elif named == "":
        why = "must specify non empty persistentVolumeName"
        yield causes.required(f"{path}.persistentVolumeName", why)
    yield from checks.subdomain("spec.nodeName", spec.get("nodeName", ""))
    if named is not None:
        yield from checks.subdomain(f"{path}.persistentVolumeName", named)
