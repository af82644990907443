"""What is secret in objects and changes of a plane is hidden before anybody is shown them. Pure."""

from __future__ import annotations

from typing import Any

HIDDEN = "<hidden>"
_SECRETS = ("", "secrets")
_FIELDS = ("data", "stringData")
_COPY = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that repeats the whole object."""


def hide(key: tuple[str, str], obj: dict[str, Any]) -> dict[str, Any]:
    """The object, of a Secret with its keys but without its values."""
    if key != _SECRETS:
        return obj
    shown = dict(obj)
    for name in _FIELDS:
        if isinstance(shown.get(name), dict):
            shown[name] = dict.fromkeys(shown[name], HIDDEN)
    meta = shown.get("metadata") or {}
    if _COPY in (meta.get("annotations") or {}):
        annotations = {**meta["annotations"], _COPY: HIDDEN}
        shown["metadata"] = {**meta, "annotations": annotations}
    return shown


def hide_field(key: tuple[str, str], change: dict[str, Any]) -> dict[str, Any]:
    """The change of a field, of a Secret without what it was and is."""
    if key != _SECRETS or not _is_secret(change["path"]):
        return change
    return {name: value if name == "path" else HIDDEN for name, value in change.items()}


def _is_secret(path: str) -> bool:
    return path.partition(".")[0].partition("[")[0] in _FIELDS or _COPY in path
