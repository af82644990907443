"""Volumes of a pod: one source each, well formed. Pure.

The sources stand in the order in which the server looks for them: if a volume has two, the second
is reported. Of sources that belong to a particular storage system only the required fields are
checked: most of these systems are served by CSI drivers today, or by nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import each, one_of
from kvestigate.cluster.plane.kinds.claim_spec import validate_claim_template
from kvestigate.cluster.plane.kinds.podspec import downward, paths
from kvestigate.cluster.plane.kinds.podspec.defaults import DEFAULT_MODE
from kvestigate.kube import causes, names, quantities
from kvestigate.kube.causes import Cause, Causes

Object = dict[str, Any]
Check = Callable[[str, Object], Causes]

_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
TOKEN_SECONDS_MIN, TOKEN_SECONDS_MAX = 600, 2**32
MOUNTED_TOKEN_SECONDS = 3607


def validate_volumes(
    path: str, volumes: list[Object], pod: Object | None, by_name: dict[str, Object]
) -> Causes:
    """Fills `found` with the volumes that containers may refer to.

    `pod` is the metadata of the pod, None for a template.
    """
    for index, volume in enumerate(volumes):
        at, name = f"{path}[{index}]", volume["name"]
        wrong = list(_sources(at, volume, pod))
        wrong += checks.needed(f"{at}.name", name, names.label_problems)
        if name in by_name:
            wrong.append(causes.duplicate(f"{at}.name", name))
        if wrong:
            yield from wrong
        else:
            by_name[name] = volume
        if "persistentVolumeClaim" in volume and pod is not None:
            yield from _own_claim(f"{at}.persistentVolumeClaim", volume, volumes, pod)


def _own_claim(path: str, volume: Object, volumes: list[Object], pod: Object) -> Causes:
    claim, name = volume["persistentVolumeClaim"]["claimName"], pod.get("name")
    if name and claim in [f"{name}-{other['name']}" for other in volumes if "ephemeral" in other]:
        why = "must not reference a PVC that gets created for an ephemeral volume"
        yield causes.invalid(f"{path}.claimName", claim, why)


def _sources(path: str, volume: Object, pod: Object | None) -> Causes:
    present = list(filter(_SOURCES.__contains__, volume))
    if not present:
        yield causes.required(path, "must specify a volume type")
        return
    if len(present) > 1:
        present.sort(key=list(_SOURCES).index)
    first, *others = present
    if first == "image" and pod is not None and not volume["image"].get("reference"):
        yield causes.required(f"{path}.image.reference")
    yield from _SOURCES[first](f"{path}.{first}", volume[first])
    pod_name = "" if pod is None else pod.get("name", "")
    if first == "ephemeral" and pod_name and volume["name"]:
        claim = f"{pod_name}-{volume['name']}"
        for problem in names.subdomain_problems(claim):
            why = f'PVC name "{claim}": {problem}'
            yield causes.invalid(f"{path}.name", volume["name"], why)
    for source in others:
        yield causes.forbidden(f"{path}.{source}", "may not specify more than 1 volume type")


def _empty_dir(path: str, source: Object) -> Causes:
    if "sizeLimit" in source and quantities.parse(source["sizeLimit"]).nanos < 0:
        why = "SizeLimit field must be a valid resource quantity"
        yield causes.forbidden(f"{path}.sizeLimit", why)


def validate_host_path(path: str, source: Object) -> Causes:
    if not source["path"]:
        yield causes.required(f"{path}.path")
        return
    yield from paths.no_backsteps(f"{path}.path", source["path"])
    if source.get("type", "") not in _HOST_PATH_TYPES:
        yield causes.unsupported(f"{path}.type", source["type"], _HOST_PATH_TYPES)


def _git_repo(path: str, source: Object) -> Causes:
    if not source["repository"]:
        yield causes.required(f"{path}.repository")
    yield from paths.descending(f"{path}.directory", source.get("directory", ""))


def _secret(path: str, source: Object) -> Causes:
    if not source.get("secretName"):
        yield causes.required(f"{path}.secretName")
    yield from _files(path, source)


def _config_map(path: str, source: Object) -> Causes:
    if not source.get("name"):
        yield causes.required(f"{path}.name")
    yield from _files(path, source)


def _files(path: str, source: Object) -> Causes:
    yield from paths.mode(f"{path}.defaultMode", source.get("defaultMode"))
    for index, item in enumerate(source.get("items") or ()):
        yield from _key_to_path(f"{path}.items[{index}]", item)


def _key_to_path(path: str, item: Object) -> list[Cause]:
    problems = [
        causes.required(f"{path}.{field}") for field in ("key", "path") if not item.get(field)
    ]
    problems += paths.unreserved(f"{path}.path", item.get("path", ""))
    if "mode" in item:
        problems += paths.mode(f"{path}.mode", item["mode"])
    return problems


def validate_nfs(path: str, source: Object) -> Causes:
    for field in ("server", "path"):
        if not source[field]:
            yield causes.required(f"{path}.{field}")
    if not source["path"].startswith("/"):
        yield causes.invalid(f"{path}.path", source["path"], "must be an absolute path")


def _claim(path: str, source: Object) -> Causes:
    if not source["claimName"]:
        yield causes.required(f"{path}.claimName")


def _downward(path: str, source: Object) -> Causes:
    yield from paths.mode(f"{path}.defaultMode", source.get("defaultMode"))
    for item in source.get("items") or ():
        yield from _downward_file(path, item)


def _downward_file(path: str, item: Object) -> Causes:
    if not item.get("path"):
        yield causes.required(f"{path}.path")
    yield from paths.unreserved(f"{path}.path", item.get("path", ""))
    if "fieldRef" in item:
        at = f"{path}.fieldRef"
        yield from downward.validate_field_ref(at, item["fieldRef"], downward.VOLUME_FIELDS)
        if "resourceFieldRef" in item:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield causes.invalid(path, "resource", why)
    elif "resourceFieldRef" in item:
        ref = item["resourceFieldRef"]
        yield from downward.validate_resource_ref(f"{path}.resourceFieldRef", ref, volume=True)
    else:
        yield causes.required(path, "one of fieldRef and resourceFieldRef is required")
    yield from paths.mode(f"{path}.mode", item.get("mode"))


def token_source() -> Object:
    """The volume with the token of a ServiceAccount that the server adds to pods."""
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": MOUNTED_TOKEN_SECONDS, "path": "token"}},
            {"configMap": authority},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
        ],
        "defaultMode": DEFAULT_MODE,
    }


_TOKEN_SOURCE = token_source()


def _projected(path: str, volume: Object) -> Causes:
    if volume == _TOKEN_SOURCE:  # as in nearly every pod
        return
    yield from paths.mode(f"{path}.defaultMode", volume.get("defaultMode"))
    seen: set[str] = set()
    for index, source in enumerate(volume.get("sources") or ()):
        at = f"{path}.sources[{index}]"
        for name in ("secret", "configMap"):
            if name in source:
                yield from _projected_keys(path, f"{at}.{name}", source[name], seen)
        if "downwardAPI" in source:
            for item in source["downwardAPI"].get("items") or ():
                yield from _downward_file(f"{at}.downwardAPI", item)
                yield from _once(path, item.get("path", ""), item.get("path", ""), seen)
        if "serviceAccountToken" in source:
            yield from _token(path, f"{at}.serviceAccountToken", source["serviceAccountToken"])
        if len(source) > 1:
            why = "may not specify more than 1 volume type per source"
            yield causes.forbidden(at, why)


def _projected_keys(path: str, at: str, source: Object, seen: set[str]) -> Causes:
    name = source.get("name", "")
    if not name:
        yield causes.required(f"{at}.name")
    for index, item in enumerate(source.get("items") or ()):
        yield from _key_to_path(f"{at}.items[{index}]", item)
        yield from _once(path, item.get("path", ""), name, seen)


def _once(path: str, file: str, source: str, seen: set[str]) -> list[Cause]:
    if file and file in seen:
        return [causes.invalid(path, source, "conflicting duplicate paths")]
    seen.add(file)
    return []


def _token(path: str, at: str, source: Object) -> Causes:
    seconds = source["expirationSeconds"]
    if seconds < TOKEN_SECONDS_MIN:
        why = "may not specify a duration less than 10 minutes"
        yield causes.invalid(f"{at}.expirationSeconds", seconds, why)
    if seconds > TOKEN_SECONDS_MAX:
        why = "may not specify a duration larger than 2^32 seconds"
        yield causes.invalid(f"{at}.expirationSeconds", seconds, why)
    if not source.get("path"):
        yield causes.required(f"{path}.path")
    else:
        yield from paths.unreserved(f"{path}.path", source["path"])


def _csi(path: str, source: Object) -> Causes:
    yield from checks.driver_name(f"{path}.driver", source["driver"])
    if "nodePublishSecretRef" in source:
        name = source["nodePublishSecretRef"].get("name", "")
        if not name:
            yield causes.required(f"{path}.nodePublishSecretRef.name")
        else:
            yield from each(f"{path}.name", name, names.subdomain_problems(name))


def _ephemeral(path: str, source: Object) -> Causes:
    at = f"{path}.volumeClaimTemplate"
    if "volumeClaimTemplate" not in source:
        yield causes.required(at)
    else:
        yield from validate_claim_template(at, source["volumeClaimTemplate"])


def _image(path: str, source: Object) -> Causes:
    allowed = ("Always", "IfNotPresent", "Never")
    yield from one_of(f"{path}.pullPolicy", source["pullPolicy"], allowed)


def _needs(*fields: str) -> Check:
    """The check of a source that must have these fields."""

    def check(path: str, source: Object) -> Causes:
        for field in fields:
            if not source.get(field):
                yield causes.required(f"{path}.{field}")

    return check


STORAGE_SYSTEMS: dict[str, Check] = {
    "awsElasticBlockStore": _needs("volumeID"),
    "azureDisk": _needs("diskName", "diskURI"),
    "azureFile": _needs("secretName", "shareName"),
    "cephfs": _needs("monitors"),
    "cinder": _needs("volumeID"),
    "fc": _needs(),
    "flexVolume": _needs("driver"),
    "flocker": _needs(),
    "gcePersistentDisk": _needs("pdName"),
    "glusterfs": _needs("endpoints", "path"),
    "iscsi": _needs("targetPortal", "iqn"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "quobyte": _needs("registry", "volume"),
    "rbd": _needs("monitors", "image"),
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "storageos": _needs("volumeName"),
    "vsphereVolume": _needs("volumePath"),
}
"""The same in pods and in PersistentVolumes."""

_SOURCES: dict[str, Check] = {
    "emptyDir": _empty_dir,
    "hostPath": validate_host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": STORAGE_SYSTEMS["gcePersistentDisk"],
    "awsElasticBlockStore": STORAGE_SYSTEMS["awsElasticBlockStore"],
    "secret": _secret,
    "nfs": validate_nfs,
    "iscsi": STORAGE_SYSTEMS["iscsi"],
    "glusterfs": STORAGE_SYSTEMS["glusterfs"],
    "flocker": STORAGE_SYSTEMS["flocker"],
    "persistentVolumeClaim": _claim,
    "rbd": STORAGE_SYSTEMS["rbd"],
    "cinder": STORAGE_SYSTEMS["cinder"],
    "cephfs": STORAGE_SYSTEMS["cephfs"],
    "quobyte": STORAGE_SYSTEMS["quobyte"],
    "downwardAPI": _downward,
    "fc": STORAGE_SYSTEMS["fc"],
    "flexVolume": STORAGE_SYSTEMS["flexVolume"],
    "configMap": _config_map,
    "azureFile": STORAGE_SYSTEMS["azureFile"],
    "vsphereVolume": STORAGE_SYSTEMS["vsphereVolume"],
    "photonPersistentDisk": STORAGE_SYSTEMS["photonPersistentDisk"],
    "portworxVolume": STORAGE_SYSTEMS["portworxVolume"],
    "azureDisk": STORAGE_SYSTEMS["azureDisk"],
    "storageos": STORAGE_SYSTEMS["storageos"],
    "projected": _projected,
    "scaleIO": STORAGE_SYSTEMS["scaleIO"],
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
