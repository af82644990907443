"""References from a container or volume to fields of its own pod. Pure."""

from __future__ import annotations

import re
from typing import Any

from kvestigate.cluster.plane.kinds.checks import each
from kvestigate.kube import causes, names, quantities
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_KNOWN_FIELDS = frozenset((*ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "status.phase"))
_SUBSCRIPTED = ("metadata.annotations", "metadata.labels")

_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")

_SUBSCRIPT = re.compile(r"(.+)\['([^']*)'\]")


def validate_field_ref(path: str, ref: Object, allowed: tuple[str, ...]) -> Causes:
    field = ref.get("fieldPath", "")
    if not field:
        yield causes.required(f"{path}.fieldPath")
        return
    if ref["apiVersion"] != "v1":
        why = f"unsupported pod version: {ref['apiVersion']}"
        yield causes.invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {why}")
        return
    subscript = _SUBSCRIPT.fullmatch(field)
    if subscript is None:
        if field not in _KNOWN_FIELDS:
            why = f"field label not supported: {field}"
            yield causes.invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {why}")
        elif field not in allowed:
            yield causes.unsupported(f"{path}.fieldPath", field, allowed)
        return
    of, key = subscript[1], subscript[2]
    if of in _SUBSCRIPTED:
        checked = key.lower() if of == "metadata.annotations" else key
        yield from each(path, checked, names.qualified_name_problems(checked))
    else:
        why = f"field label does not support subscript: {field}"
        yield causes.invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {why}")


def validate_resource_ref(path: str, ref: Object, *, volume: bool) -> Causes:
    resource = ref.get("resource", "")
    if volume and not ref.get("containerName"):
        yield causes.required(f"{path}.containerName")
    elif not resource:
        yield causes.required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        yield causes.unsupported(f"{path}.resource", resource, _RESOURCES)
    divisor = ref.get("divisor", "0")
    if not quantities.parse(divisor):
        return
    if resource not in _RESOURCES and not resource.startswith(_HUGE):
        return
    kind = resource.partition(".")[2]
    if kind == "cpu":
        if divisor not in ("1", "1m"):
            why = "only divisor's values 1m and 1 are supported with the cpu resource"
            yield causes.invalid(f"{path}.divisor", resource, why)
    elif divisor not in _UNITS:
        spoken = {"ephemeral-storage": "local ephemeral storage"}.get(kind, kind)
        spoken = "hugepages" if spoken.startswith("hugepages-") else spoken
        why = f"only divisor's values {', '.join(_UNITS)} are supported with the {spoken} resource"
        yield causes.invalid(f"{path}.divisor", resource, why)
