"""What differs between an object as it is and as it would be. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kvestigate.kube import builtins
from kvestigate.kube.redaction import sized
from kvestigate.manifests.model import Change

_OF_THE_SERVER = frozenset(
    {"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"}
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LONGEST = 200
"""Characters of a value that are shown."""

_Values = Mapping[str, Any]


def differences(before: _Values, after: _Values) -> tuple[Change, ...]:
    """Field by field. Of a Secret's values only the sizes are told."""
    old, new = _comparable(before), _comparable(after)
    secret = new.get("kind") == "Secret" and new.get("apiVersion") == "v1"
    return tuple(
        _hidden(path, left, right)
        if secret and path.startswith(("data", "stringData"))
        else Change(path, _shown(left), _shown(right))
        for path, left, right in _walk("", old, new)
    )


def _comparable(body: _Values) -> dict[str, Any]:
    """Without what the server alone writes, and without the copy that repeats the whole object."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in _OF_THE_SERVER}
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {
            k: value for k, value in annotations.items() if k != _LAST_APPLIED
        }
    rest = {
        key: value for key, value in body.items() if key != "status" or not _has_own_status(body)
    }
    return {**rest, "metadata": metadata}


def _has_own_status(body: _Values) -> bool:
    """Whether `status` is written apart from the rest: what differs there is not our doing."""
    return builtins.registry().for_kind(body["apiVersion"], body["kind"]) is not None


def _walk(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if old == new or (_empty(old) and _empty(new)):
        return
    if isinstance(old, dict | None) and isinstance(new, dict | None) and (old or new):
        yield from _walk_mapping(path, old or {}, new or {})
    elif isinstance(old, list) and isinstance(new, list):
        yield from _walk_list(path, old, new)
    else:
        yield path, old, new


def _walk_mapping(
    path: str, old: _Values, new: _Values, *, named: bool = False
) -> Iterator[tuple[str, Any, Any]]:
    for key in dict.fromkeys((*old, *new)):
        yield from _walk(_below(path, key, named), old.get(key), new.get(key))


def _walk_list(path: str, old: list[Any], new: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    names = _named(old), _named(new)
    if names[0] is not None and names[1] is not None:
        yield from _walk_mapping(path, names[0], names[1], named=True)
        return
    for index in range(max(len(old), len(new))):
        left = old[index] if index < len(old) else None
        right = new[index] if index < len(new) else None
        yield from _walk(f"{path}[{index}]", left, right)


def _named(items: list[Any]) -> dict[str, Any] | None:
    """The items by name, as people speak of containers and volumes; None if they have none."""
    by_name: dict[str, Any] = {}
    for item in items:
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or name in by_name:
            return None
        by_name[name] = item
    return by_name


def _below(path: str, key: str, named: bool) -> str:
    # A key with dots in it would read as a path of its own.
    if named or "." in key or "/" in key:
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _empty(value: Any) -> bool:
    return value is None or value in ({}, [])


def _hidden(path: str, left: Any, right: Any) -> Change:
    before = None if left is None else sized(left)
    after = None if right is None else sized(right)
    return Change(path, before, f"{after}, other content" if before == after else after)


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
