"""What a claim asks of storage, in a PersistentVolumeClaim or a template for one. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.checks import POSITIVE, each, subdomain
from kvestigate.kube import causes, names, quantities
from kvestigate.kube.causes import Causes

Object = dict[str, Any]

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_TEMPLATE_METADATA = ("annotations", "labels")


def validate_claim_template(path: str, template: Object) -> Causes:
    yield from validate_template_metadata(f"{path}.metadata", template.get("metadata") or {})
    yield from validate_claim_spec(f"{path}.spec", template["spec"])


def validate_template_metadata(path: str, meta: Object) -> Causes:
    """Metadata of a template, which must not name the objects made from it."""
    yield from checks.annotation_keys(f"{path}.annotations", meta.get("annotations") or {})
    yield from checks.labels(f"{path}.labels", meta.get("labels") or {})
    for field in meta:
        if field not in _TEMPLATE_METADATA:
            shown = "uID" if field == "uid" else field  # the server's own capitals
            yield causes.forbidden(f"{path}.{shown}", "cannot be set")


def validate_claim_spec(path: str, spec: Object) -> Causes:
    modes = spec.get("accessModes") or []
    if not modes:
        yield causes.required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from checks.label_selector(f"{path}.selector", spec.get("selector"))
    yield from validate_access_modes(f"{path}.accessModes", modes)
    storage = (spec["resources"].get("requests") or {}).get("storage")
    if storage is None:
        yield causes.required(f"{path}.resources[storage]")
    elif quantities.parse(storage).nanos <= 0:
        yield causes.invalid(f"{path}.resources[storage]", storage, POSITIVE)
    if name := spec.get("storageClassName"):
        yield from subdomain(f"{path}.storageClassName", name)
    yield from checks.choice(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES)
    yield from _sources(path, spec)
    if name := spec.get("volumeAttributesClassName"):
        yield from subdomain(f"{path}.volumeAttributesClassName", name)


def validate_access_modes(path: str, modes: list[str]) -> Causes:
    for mode in modes:
        yield from checks.choice(path, mode, ACCESS_MODES)
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        yield causes.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _sources(path: str, spec: Object) -> Causes:
    for field in ("dataSource", "dataSourceRef"):
        if field in spec:
            yield from _source(f"{path}.{field}", spec[field])
    if "dataSource" in spec and "dataSourceRef" in spec:
        source, ref = spec["dataSource"], spec["dataSourceRef"]
        if ref.get("namespace"):
            why = "may not be specified when dataSourceRef.namespace is specified"
            yield causes.invalid(path, {}, why)
        elif any(source.get(key) != ref.get(key) for key in ("apiGroup", "kind", "name")):
            yield causes.invalid(path, {}, "must match dataSourceRef")


def _source(path: str, source: Object) -> Causes:
    for field in ("name", "kind"):
        if not source.get(field):
            yield causes.required(f"{path}.{field}")
    group = source.get("apiGroup") or ""
    if not group and source.get("kind") != "PersistentVolumeClaim":
        why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield causes.invalid(path, source.get("kind", ""), why)
    if group:
        yield from subdomain(f"{path}.apiGroup", group)
    if namespace := source.get("namespace"):
        yield from each(f"{path}.namespace", namespace, names.label_problems(namespace))


def claim_warnings(path: str, spec: Object) -> list[str]:
    """Warnings about storage requests that are not whole bytes."""
    warnings = []
    resources = spec.get("resources") or {}
    for kind in ("requests", "limits"):
        amount = (resources.get(kind) or {}).get("storage", "0")
        if quantities.millis(amount) % 1000:
            why = f'fractional byte value "{amount}" is invalid, must be an integer'
            warnings.append(f"{path}.resources.{kind}[storage]: {why}")
    return warnings
