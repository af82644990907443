"""An object of any type as paths and values. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvestigate.kube.redaction import sized
from kvestigate.kube.resources import Resource

# Shown elsewhere, or of no use to people.
_HIDDEN = {
    "name",
    "namespace",
    "creationTimestamp",
    "deletionTimestamp",
    "ownerReferences",
    "managedFields",
    "generateName",
    "selfLink",
}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SECRET_FIELDS = ("data", "stringData")


def facts_of_anything(resource: Resource, body: dict[str, Any]) -> list[tuple[str, str]]:
    """Every leaf with its path: `spec.rules[0].host`."""
    shown = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    shown["metadata"] = _metadata(body["metadata"])
    if (resource.group, resource.plural) == ("", "secrets"):
        for field in _SECRET_FIELDS:
            if field in shown:
                shown[field] = {key: sized(value) for key, value in shown[field].items()}
    return list(_leaves("", shown))


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Without the last-applied annotation, which repeats the object and the values of a Secret."""
    kept = {key: value for key, value in metadata.items() if key not in _HIDDEN}
    if "annotations" in kept:
        annotations = kept["annotations"].items()
        kept["annotations"] = {key: value for key, value in annotations if key != _LAST_APPLIED}
    return kept


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            # A key with dots would look like a path.
            step = f"[{key}]" if "." in key or "/" in key else f".{key}" if path else key
            yield from _leaves(f"{path}{step}", inner)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(f"{path}[{index}]", inner)
    elif value not in (None, {}, []):
        yield path, _scalar(value)


def _scalar(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
