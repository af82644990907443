"""PersistentVolumeClaims: wishes for storage that do not change, but may grow."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import difference
from kvestigate.cluster.plane.kinds.claim_spec import claim_warnings, validate_claim_spec
from kvestigate.cluster.plane.kinds.podspec.defaults import default_claim_spec, round_amounts
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, quantities
from kvestigate.kube.causes import Causes

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_SNAPSHOTS = "snapshot.storage.k8s.io"
_STORAGE = "spec.resources.requests.storage"


class ClaimKind(Kind):
    returns_deleted = True
    status_carries_metadata = True

    def default(self, obj: Object) -> None:
        default_claim_spec(obj["spec"])
        status: Object = obj.setdefault("status", {})
        status.setdefault("phase", "Pending")
        for field in ("capacity", "allocatedResources"):
            round_amounts(status.get(field) or {})

    def on_create(self, obj: Object, scene: Scene) -> None:
        obj["status"] = {"phase": "Pending"}
        _settle_source(obj["spec"], None)

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        if scene.subresource != "status":
            _settle_source(new["spec"], old["spec"])

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return validate_claim_spec("spec", obj["spec"])

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        spec, before = new["spec"], old["spec"]
        annotated = _class_annotation(old)
        yield from _annotation(_class_annotation(new), annotated)
        masked, bound = dict(spec), (old.get("status") or {}).get("phase") == "Bound"
        if not before.get("volumeName"):
            _restore(masked, before, "volumeName")
        named = spec.get("storageClassName")
        if named is not None and "storageClassName" not in before and annotated in (None, named):
            _restore(masked, before, "storageClassName")
        size, was = _size(spec), _size(before)
        if bound:
            _restore(masked, before, "volumeAttributesClassName")
            requests = {**(spec["resources"].get("requests") or {}), "storage": was}
            masked["resources"] = {**spec["resources"], "requests": requests}
        if masked != before:
            why = (
                "spec is immutable after creation except resources.requests and "
                "volumeAttributesClassName for bound claims"
            )
            yield causes.forbidden("spec", f"{why}\n{difference(before, masked)}")
        if quantities.parse(size) < quantities.parse(was):
            capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
            if quantities.parse(size) <= quantities.parse(capacity):
                yield causes.forbidden(_STORAGE, "field can not be less than status.capacity")
        yield from checks.immutable("", spec, before, "volumeMode")
        yield from _attributes(spec, old)

    def validate_status(self, new: Object, old: Object, scene: Scene) -> Causes:
        for name, amount in ((new.get("status") or {}).get("capacity") or {}).items():
            value = quantities.whole(amount)
            if value < 0:
                why = "must be a valid resource quantity"
                yield causes.invalid(f"status.capacity[{name}]", value, why)

    def warnings(self, obj: Object) -> list[str]:
        return claim_warnings("spec", obj["spec"])


def _settle_source(spec: Object, before: Object | None) -> None:
    """Copy `dataSource` to `dataSourceRef` and back, unless the source is in another namespace."""
    known = before or {}
    if "dataSourceRef" not in known and (spec.get("dataSourceRef") or {}).get("namespace"):
        del spec["dataSourceRef"]  # behind a feature gate that is off by default
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if ref is None and source is not None and "dataSource" not in known:
        of_claims = source.get("kind") == "PersistentVolumeClaim" and not source.get("apiGroup")
        of_snapshots = source.get("kind") == "VolumeSnapshot"
        if not of_claims and not (of_snapshots and source.get("apiGroup") == _SNAPSHOTS):
            del spec["dataSource"]
            return
    if source is not None and ref is None:
        spec["dataSourceRef"] = dict(source)
    elif ref is not None and source is None and not ref.get("namespace"):
        spec["dataSource"] = {key: value for key, value in ref.items() if key != "namespace"}
    for field in ("dataSource", "dataSourceRef"):
        if field in spec:
            # Of all references these alone spell out that they have no group.
            spec[field].setdefault("apiGroup", None)


def _class_annotation(obj: Object) -> str | None:
    value: str | None = (obj["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
    return value


def _annotation(new: str | None, old: str | None) -> Causes:
    if (new or "") != (old or ""):
        path = f"metadata.annotations.{CLASS_ANNOTATION}"
        yield causes.invalid(path, new or "", checks.IMMUTABLE)


def _restore(masked: Object, before: Object, field: str) -> None:
    masked.pop(field, None)
    if field in before:
        masked[field] = before[field]


def _size(spec: Object) -> str:
    size: str = (spec["resources"].get("requests") or {}).get("storage", "0")
    return size


def _attributes(spec: Object, old: Object) -> Causes:
    field = "volumeAttributesClassName"
    current = (old.get("status") or {}).get("currentVolumeAttributesClassName")
    if current is None or spec.get(field) == old["spec"].get(field) or spec.get(field):
        return
    what = "nil" if field not in spec else "empty string"
    why = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    yield causes.forbidden(f"spec.{field}", why)
