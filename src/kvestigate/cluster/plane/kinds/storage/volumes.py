"""PersistentVolumes: pieces of storage, from one source each."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import POSITIVE, difference
from kvestigate.cluster.plane.kinds.claim_spec import VOLUME_MODES, validate_access_modes
from kvestigate.cluster.plane.kinds.podspec import paths
from kvestigate.cluster.plane.kinds.podspec.defaults import default_volume, round_amounts
from kvestigate.cluster.plane.kinds.podspec.scheduling import validate_node_selector
from kvestigate.cluster.plane.kinds.podspec.volumes import (
    STORAGE_SYSTEMS,
    Check,
    validate_host_path,
    validate_nfs,
)
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.cluster.plane.model.metadata import timestamp
from kvestigate.kube import causes, names, quantities
from kvestigate.kube.causes import Causes

RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_RECYCLE = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use "
    "dynamic provisioning."
)


class VolumeKind(Kind):
    returns_deleted = True
    status_carries_metadata = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        obj.setdefault("status", {}).setdefault("phase", "Pending")
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        round_amounts(spec.get("capacity") or {})
        default_volume(spec)

    def on_create(self, obj: Object, scene: Scene) -> None:
        now = timestamp(scene.now)
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": now}

    def on_update(self, new: Object, old: Object, scene: Scene) -> None:
        if scene.subresource != "status":
            return
        status, before = new["status"], old.get("status") or {}
        time, last = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
        if status["phase"] != before.get("phase"):
            if time in (None, last):
                status["lastPhaseTransitionTime"] = timestamp(scene.now)
        elif time is None and last is not None:
            status["lastPhaseTransitionTime"] = last

    def validate(self, obj: Object, scene: Scene) -> Causes:
        spec = obj["spec"]
        modes = spec.get("accessModes") or []
        if not modes:
            yield causes.required("spec.accessModes")
        yield from validate_access_modes("spec.accessModes", modes)
        yield from _capacity(spec.get("capacity") or {})
        policy = spec["persistentVolumeReclaimPolicy"]
        if policy not in RECLAIM_POLICIES:
            path = "spec.persistentVolumeReclaimPolicy"
            yield causes.unsupported(path, policy, RECLAIM_POLICIES)
        affinity = (spec.get("nodeAffinity") or {}).get("required")
        if affinity is not None:
            yield from validate_node_selector("spec.nodeAffinity.required", affinity)
        elif "nodeAffinity" in spec:
            yield causes.required(
                "spec.nodeAffinity.required", "must specify required node constraints"
            )
        yield from _source(spec, placed=affinity is not None)
        host_path = (spec.get("hostPath") or {}).get("path", "")
        if host_path and not host_path.strip("/") and policy == "Recycle":
            why = "may not be 'recycle' for a hostPath mount of '/'"
            yield causes.forbidden("spec.persistentVolumeReclaimPolicy", why)
        if "storageClassName" in spec:
            yield from checks.subdomain("spec.storageClassName", spec["storageClassName"])
        yield from checks.choice("spec.volumeMode", spec["volumeMode"], VOLUME_MODES)
        yield from _attributes_class(spec)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        spec, before = new["spec"], old["spec"]
        sources = [
            {name: side[name] for name in SOURCES if name in side} for side in (spec, before)
        ]
        new, old = sources
        added = (new.get("csi") or {}).get("controllerExpandSecretRef")
        if added and "csi" in old and "controllerExpandSecretRef" not in old["csi"]:
            csi = {
                key: value
                for key, value in new["csi"].items()
                if key != "controllerExpandSecretRef"
            }
            new = {**new, "csi": csi}
        if new != old:
            why = "spec.persistentvolumesource is immutable after creation"
            yield causes.forbidden("spec.persistentvolumesource", f"{why}\n{difference(old, new)}")
        yield from checks.immutable("", spec, before, "volumeMode")
        affinity, was = spec.get("nodeAffinity"), before.get("nodeAffinity")
        if was is not None and affinity != was:
            why = f"{checks.IMMUTABLE}, except for updating from beta label to GA"
            yield causes.invalid("nodeAffinity", affinity, why)
        if "volumeAttributesClassName" in before and "volumeAttributesClassName" not in spec:
            why = "update from non-nil value to nil is forbidden"
            yield causes.forbidden("spec.volumeAttributesClassName", why)

    def warnings(self, obj: Object) -> list[str]:
        if obj["spec"]["persistentVolumeReclaimPolicy"] == "Recycle":
            return [f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}"]
        return []


def _attributes_class(spec: Object) -> Causes:
    name, path = spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"
    if name is None:
        return
    if not name:
        yield causes.required(path, "an empty string is disallowed")
    else:
        yield from checks.subdomain(path, name)
    if "csi" not in spec:
        why = "has to be specified when using volumeAttributesClassName"
        yield causes.required("spec.csi", why)


def _capacity(capacity: dict[str, str]) -> Causes:
    if not capacity:
        yield causes.required("spec.capacity")
    if set(capacity) != {"storage"}:
        yield causes.unsupported("spec.capacity", capacity or None, ["storage"])
    for name, amount in capacity.items():
        path = f"spec.capacity[{name}]"
        if quantities.whole(amount) < 0:
            why = "must be a valid resource quantity"
            yield causes.invalid(path, quantities.whole(amount), why)
        if quantities.parse(amount).nanos <= 0:
            yield causes.invalid(path, amount, POSITIVE)


def _source(spec: Object, *, placed: bool) -> Causes:
    present = [name for name in SOURCES if name in spec]
    if not present:
        yield causes.required("spec", "must specify a volume type")
        return
    first, *others = present
    yield from SOURCES[first](f"spec.{first}", spec[first])
    if first == "local" and not placed:
        yield causes.required("spec.nodeAffinity", "Local volume requires node affinity")
    for name in others:
        yield causes.forbidden(f"spec.{name}", "may not specify more than 1 volume type")


def _local(path: str, source: Object) -> Causes:
    if not source["path"]:
        yield causes.required(f"{path}.path")
    else:
        yield from paths.no_backsteps(f"{path}.path", source["path"])


def _csi(path: str, source: Object) -> Causes:
    yield from checks.driver_name(f"{path}.driver", source["driver"])
    if not source["volumeHandle"]:
        yield causes.required(f"{path}.volumeHandle")
    for ref in _SECRETS:
        if ref in source:
            yield from _secret(f"{path}.{ref}", source[ref])


def _secret(path: str, ref: Object) -> Causes:
    name, namespace = ref.get("name", ""), ref.get("namespace", "")
    yield from checks.needed(f"{path}.name", name, names.subdomain_problems)
    yield from checks.needed(f"{path}.namespace", namespace, names.label_problems)


_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)

# In the order in which the server looks for them.
SOURCES: dict[str, Check] = {
    "hostPath": validate_host_path,
    "gcePersistentDisk": STORAGE_SYSTEMS["gcePersistentDisk"],
    "awsElasticBlockStore": STORAGE_SYSTEMS["awsElasticBlockStore"],
    "glusterfs": STORAGE_SYSTEMS["glusterfs"],
    "flocker": STORAGE_SYSTEMS["flocker"],
    "nfs": validate_nfs,
    "rbd": STORAGE_SYSTEMS["rbd"],
    "quobyte": STORAGE_SYSTEMS["quobyte"],
    "cephfs": STORAGE_SYSTEMS["cephfs"],
    "iscsi": STORAGE_SYSTEMS["iscsi"],
    "cinder": STORAGE_SYSTEMS["cinder"],
    "fc": STORAGE_SYSTEMS["fc"],
    "flexVolume": STORAGE_SYSTEMS["flexVolume"],
    "azureFile": STORAGE_SYSTEMS["azureFile"],
    "vsphereVolume": STORAGE_SYSTEMS["vsphereVolume"],
    "photonPersistentDisk": STORAGE_SYSTEMS["photonPersistentDisk"],
    "portworxVolume": STORAGE_SYSTEMS["portworxVolume"],
    "azureDisk": STORAGE_SYSTEMS["azureDisk"],
    "scaleIO": STORAGE_SYSTEMS["scaleIO"],
    "local": _local,
    "storageos": STORAGE_SYSTEMS["storageos"],
    "csi": _csi,
}
