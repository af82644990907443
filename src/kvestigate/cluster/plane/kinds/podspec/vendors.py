"""Volume sources of particular storage systems, in pods and in PersistentVolumes. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kvestigate.cluster.plane.kinds.checks import Causes, between, label
from kvestigate.kube import causes

Object = dict[str, Any]
Check = Callable[[str, Object], Causes]

_ISCSI_FORMS = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}
_TENANT_MAX = 64
_QUOBYTE = "must be a host:port pair or multiple pairs separated by commas"
_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
    "{disk-id}"
)
_BLOB = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def _needs(*fields: str) -> Check:
    """A check that these are there."""

    def check(path: str, source: Object) -> Causes:
        for field in fields:
            if not source.get(field):
                yield causes.required(f"{path}.{field}")

    return check


def _google_disk(path: str, source: Object) -> Causes:
    # The server calls it by its former name.
    return _disk(f"{path.removesuffix('gcePersistentDisk')}persistentDisk", source, "pdName")


def _amazon_disk(path: str, source: Object) -> Causes:
    return _disk(path, source, "volumeID")


def _disk(path: str, source: Object, name: str) -> Causes:
    if not source.get(name):
        yield causes.required(f"{path}.{name}")
    partition = source.get("partition", 0)
    if not 0 <= partition <= 255:
        yield causes.invalid(f"{path}.partition", partition, between(1, 255))


def _iscsi(path: str, source: Object) -> Causes:
    return _iscsi_target(path, source, "must be valid format starting with iqn, eui, or naa")


def _persistent_iscsi(path: str, source: Object) -> Causes:
    return _iscsi_target(path, source, "must be valid format")


def _iscsi_target(path: str, source: Object, strange: str) -> Causes:
    """`strange` is what to say of a name that starts unlike any."""
    if not source.get("targetPortal"):
        yield causes.required(f"{path}.targetPortal")
    if not source.get("iqn"):
        yield causes.required(f"{path}.iqn")
    else:
        yield from _iscsi_name(f"{path}.iqn", source["iqn"], strange)
    lun = source.get("lun", 0)
    if not 0 <= lun <= 255:
        yield causes.invalid(f"{path}.lun", lun, between(0, 255))
    authenticates = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if authenticates and "secretRef" not in source:
        yield causes.required(f"{path}.secretRef")
    if "initiatorName" in source:
        yield from _iscsi_name(f"{path}.initiatorname", source["initiatorName"], strange)


def _iscsi_name(path: str, name: str, strange: str) -> Causes:
    form = _ISCSI_FORMS.get(name[:3])
    if form is None:
        yield causes.invalid(path, name, strange)
    elif not form.search(name):
        yield causes.invalid(path, name, "must be valid format")


def _fibre_channel(path: str, source: Object) -> Causes:
    targets, identifiers = source.get("targetWWNs"), source.get("wwids")
    at = f"{path}.targetWWNs"
    if not targets and not identifiers:
        yield causes.required(at, "must specify either targetWWNs or wwids, but not both")
    if targets and identifiers:
        why = "targetWWNs and wwids can not be specified simultaneously"
        yield causes.invalid(at, targets, why)
    if targets and "lun" not in source:
        yield causes.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif targets and not 0 <= source["lun"] <= 255:
        yield causes.invalid(f"{path}.lun", source["lun"], between(0, 255))


def _quobyte(path: str, source: Object) -> Causes:
    registry = source.get("registry", "")
    if not registry:
        yield causes.required(f"{path}.registry", _QUOBYTE)
    elif len(source.get("tenant", "")) > _TENANT_MAX:
        why = f"must be a UUID and may not exceed a length of {_TENANT_MAX} characters"
        yield causes.required(f"{path}.tenant", why)
    else:
        for pair in registry.split(","):
            if not _HOST_AND_PORT.fullmatch(pair):
                yield causes.invalid(f"{path}.registry", registry, _QUOBYTE)
    if not source.get("volume"):
        yield causes.required(f"{path}.volume")


_HOST_AND_PORT = re.compile(r"(?:\[[^\[\]]*\]|[^\[\]:]*):[^\[\]:]*")


def _flocker(path: str, source: Object) -> Causes:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield causes.required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        yield causes.invalid(path, "resource", why)
    if "/" in name:
        yield causes.invalid(f"{path}.datasetName", name, "must not contain '/'")


def _cinder(path: str, source: Object) -> Causes:
    yield from _needs("volumeID")(path, source)
    yield from _secret(path, source, "name")


def _persistent_cinder(path: str, source: Object) -> Causes:
    yield from _needs("volumeID")(path, source)
    yield from _secret(path, source, "name", "namespace")


def _secret(path: str, source: Object, *fields: str) -> Causes:
    if "secretRef" in source:
        yield from _needs(*fields)(f"{path}.secretRef", source["secretRef"])


def _flex(path: str, source: Object) -> Causes:
    if not source.get("driver"):
        yield causes.required(f"{path}.driver")
    for key in source.get("options") or ():
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            yield causes.invalid(f"{path}.options[{key}]", key, why)


def _azure_disk(path: str, source: Object) -> Causes:
    yield from _needs("diskName", "diskURI")(path, source)
    for field, allowed in (("cachingMode", _CACHING_MODES), ("kind", _DISK_KINDS)):
        if field in source and source[field] not in allowed:
            yield causes.unsupported(f"{path}.{field}", source[field], allowed)
    if "kind" not in source:
        return
    managed, place = source["kind"] == "Managed", source.get("diskURI", "")
    if not place.startswith("/subscriptions/" if managed else "https://"):
        yield causes.unsupported(f"{path}.diskURI", place, [_MANAGED if managed else _BLOB])


def _storage_os(path: str, source: Object) -> Causes:
    yield from _storage_os_volume(path, source)
    yield from _secret(path, source, "name")


def _persistent_storage_os(path: str, source: Object) -> Causes:
    yield from _storage_os_volume(path, source)
    yield from _secret(path, source, "name", "namespace")


def _storage_os_volume(path: str, source: Object) -> Causes:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    if not name:
        yield causes.required(f"{path}.volumeName")
    else:
        yield from label(f"{path}.volumeName", name)
    if namespace:
        yield from label(f"{path}.volumeNamespace", namespace)


def _persistent_gluster(path: str, source: Object) -> Causes:
    yield from _needs("endpoints", "path")(path, source)
    namespace, at = source.get("endpointsNamespace"), f"{path}.endpointsNamespace"
    if namespace == "":
        why = "if the endpointnamespace is set, it must be a valid namespace name"
        yield causes.invalid(at, namespace, why)
    elif namespace is not None:
        yield from label(at, namespace)


def _persistent_azure_file(path: str, source: Object) -> Causes:
    yield from _needs("secretName", "shareName")(path, source)
    if source.get("secretNamespace") == "":
        yield causes.required(f"{path}.secretNamespace")


IN_PODS: Mapping[str, Check] = {
    "awsElasticBlockStore": _amazon_disk,
    "azureDisk": _azure_disk,
    "azureFile": _needs("secretName", "shareName"),
    "cephfs": _needs("monitors"),
    "cinder": _cinder,
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "flocker": _flocker,
    "gcePersistentDisk": _google_disk,
    "glusterfs": _needs("endpoints", "path"),
    "iscsi": _iscsi,
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "quobyte": _quobyte,
    "rbd": _needs("monitors", "image"),
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "storageos": _storage_os,
    "vsphereVolume": _needs("volumePath"),
}
PERSISTENT: Mapping[str, Check] = {
    **IN_PODS,
    "azureFile": _persistent_azure_file,
    "cinder": _persistent_cinder,
    "glusterfs": _persistent_gluster,
    "iscsi": _persistent_iscsi,
    "storageos": _persistent_storage_os,
}
