"""What a pod or a volume refers to by name, and so whoever runs it has to read. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]
Named = tuple[str, str]
"""(namespace, name)"""

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_SECRET_REFS = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
"""Kinds of volumes with a `secretRef`."""
_AT_HOME = ("cephfs", "flexVolume", "rbd", "scaleIO", "iscsi")
"""Of these, those of a volume whose secret is next to its claim if it does not say where."""
_FOR_NODES = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")


def secrets(spec: Object) -> Iterator[str]:
    """The secrets that the spec of a pod names."""
    for each in spec.get("imagePullSecrets") or ():
        yield each.get("name", "")
    yield from _environment(spec, "secretRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        yield (volume.get("secret") or {}).get("secretName", "")
        yield (volume.get("azureFile") or {}).get("secretName", "")
        yield ((volume.get("csi") or {}).get("nodePublishSecretRef") or {}).get("name", "")
        for source in _SECRET_REFS:
            yield ((volume.get(source) or {}).get("secretRef") or {}).get("name", "")
    yield from _projected(spec, "secret")


def config_maps(spec: Object) -> Iterator[str]:
    yield from _environment(spec, "configMapRef", "configMapKeyRef")
    for volume in spec.get("volumes") or ():
        yield (volume.get("configMap") or {}).get("name", "")
    yield from _projected(spec, "configMap")


def claims(pod: Object) -> Iterator[str]:
    """The PersistentVolumeClaims of a pod, those made for it included."""
    for volume in pod["spec"].get("volumes") or ():
        if (claim := volume.get("persistentVolumeClaim")) is not None:
            yield claim.get("claimName", "")
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}"


def device_claims(pod: Object) -> Iterator[str]:
    """The ResourceClaims of a pod, as far as it is known which those are."""
    status = pod.get("status") or {}
    made = {each["name"]: each for each in status.get("resourceClaimStatuses") or ()}
    for claim in pod["spec"].get("resourceClaims") or ():
        yield claim.get("resourceClaimName", "")
        yield made.get(claim["name"], {}).get("resourceClaimName", "")
    yield (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName", "")


def volume_secrets(spec: Object) -> Iterator[Named]:
    """The secrets that a node needs to mount a PersistentVolume with this spec."""
    home = (spec.get("claimRef") or {}).get("namespace", "")
    if (azure := spec.get("azureFile")) is not None:
        yield azure.get("secretNamespace") or home, azure.get("secretName", "")
    for source in _SECRET_REFS:
        if reference := (spec.get(source) or {}).get("secretRef"):
            default = home if source in _AT_HOME else ""
            yield reference.get("namespace") or default, reference.get("name", "")
    for field in _FOR_NODES:
        if reference := (spec.get("csi") or {}).get(field):
            yield reference.get("namespace", ""), reference.get("name", "")


def _environment(spec: Object, whole: str, key: str) -> Iterator[str]:
    for field in _CONTAINERS:
        for container in spec.get(field) or ():
            for each in container.get("envFrom") or ():
                yield (each.get(whole) or {}).get("name", "")
            for each in container.get("env") or ():
                yield ((each.get("valueFrom") or {}).get(key) or {}).get("name", "")


def _projected(spec: Object, what: str) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield (source.get(what) or {}).get("name", "")
