"""The objects that a pod or a volume refers to by name, and that its node must read. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]
Named = tuple[str, str]
"""(namespace, name)"""

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_SECRET_REFS = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
"""Kinds of volumes with a `secretRef`."""
_DEFAULT_TO_CLAIM = ("cephfs", "flexVolume", "rbd", "scaleIO", "iscsi")
"""Volume sources whose secret is in the namespace of the claim, unless they name another one."""
_FOR_NODES = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")


def secrets(spec: Object) -> Iterator[str]:
    """The secrets that the spec of a pod names."""
    for reference in spec.get("imagePullSecrets") or ():
        yield reference.get("name", "")
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
    """The PersistentVolumeClaims of a pod, those of its ephemeral volumes included."""
    for volume in pod["spec"].get("volumes") or ():
        if (claim := volume.get("persistentVolumeClaim")) is not None:
            yield claim.get("claimName", "")
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}"


def device_claims(pod: Object) -> Iterator[str]:
    """The ResourceClaims of a pod; those made from templates once its status names them."""
    status = pod.get("status") or {}
    generated = {entry["name"]: entry for entry in status.get("resourceClaimStatuses") or ()}
    for claim in pod["spec"].get("resourceClaims") or ():
        yield claim.get("resourceClaimName", "")
        yield generated.get(claim["name"], {}).get("resourceClaimName", "")
    yield (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName", "")


def volume_secrets(spec: Object) -> Iterator[Named]:
    """The secrets that a node needs to mount a PersistentVolume with this spec."""
    claim_namespace = (spec.get("claimRef") or {}).get("namespace", "")
    if (azure := spec.get("azureFile")) is not None:
        yield azure.get("secretNamespace") or claim_namespace, azure.get("secretName", "")
    for source in _SECRET_REFS:
        if reference := (spec.get(source) or {}).get("secretRef"):
            default = claim_namespace if source in _DEFAULT_TO_CLAIM else ""
            yield reference.get("namespace") or default, reference.get("name", "")
    for field in _FOR_NODES:
        if reference := (spec.get("csi") or {}).get(field):
            yield reference.get("namespace", ""), reference.get("name", "")


def _environment(spec: Object, whole: str, key: str) -> Iterator[str]:
    for field in _CONTAINERS:
        for container in spec.get(field) or ():
            for source in container.get("envFrom") or ():
                yield (source.get(whole) or {}).get("name", "")
            for variable in container.get("env") or ():
                yield ((variable.get("valueFrom") or {}).get(key) or {}).get("name", "")


def _projected(spec: Object, source_type: str) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield (source.get(source_type) or {}).get("name", "")
