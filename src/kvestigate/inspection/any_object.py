"""An object of any type as paths and values. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvestigate.kube.redaction import MASKED, masked_words, names_a_secret, sized
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
_HEAD = ("apiVersion", "kind", "metadata")


def facts_of_anything(resource: Resource, body: dict[str, Any]) -> list[tuple[str, str]]:
    """Every leaf with its path: `spec.rules[0].host`."""
    shown = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    shown["metadata"] = _metadata(body["metadata"])
    return list(_leaves("", _sized_data(resource, shown)))


def without_secrets(resource: Resource, body: dict[str, Any]) -> dict[str, Any]:
    """The whole object, as YAML can show it: without values of Secrets, passwords in variables
    and commands, the last-applied annotation that repeats all of them, and managed fields.
    """
    metadata = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    if "annotations" in metadata:
        metadata["annotations"] = _without_last_applied(metadata["annotations"])
    named = {key: value for key, value in body.items() if key in ("apiVersion", "kind")}
    shown = {key: _masked(value) for key, value in body.items() if key not in _HEAD}
    return {**named, "metadata": metadata, **_sized_data(resource, shown)}


def _sized_data(resource: Resource, shown: dict[str, Any]) -> dict[str, Any]:
    if (resource.group, resource.plural) != ("", "secrets"):
        return shown
    sizes = {
        field: {key: sized(value) for key, value in (shown[field] or {}).items()}
        for field in _SECRET_FIELDS
        if field in shown
    }
    return {**shown, **sizes}


def _masked(value: Any) -> Any:
    """`value` without the secrets in variables (`name` and `value`) and in commands."""
    match value:
        case {"name": str(name), "value": str()} if names_a_secret(name):
            return {**value, "value": MASKED}
        case dict():
            return {key: _masked_field(key, inner) for key, inner in value.items()}
        case list():
            return [_masked(inner) for inner in value]
    return value


def _masked_field(key: str, value: Any) -> Any:
    words = key in ("command", "args") and isinstance(value, list)
    if words and all(isinstance(word, str) for word in value):
        return masked_words(value)
    return _masked(value)


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Without the last-applied annotation, which repeats the object and the values of a Secret."""
    kept = {key: value for key, value in metadata.items() if key not in _HIDDEN}
    if "annotations" in kept:
        kept["annotations"] = _without_last_applied(kept["annotations"])
    return kept


def _without_last_applied(annotations: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key != _LAST_APPLIED}


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
