"""ConfigMaps: text and bytes under file names, at most a mebibyte, optionally for good."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Container, Iterable, Iterator

from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause, Causes

SIZE_LIMIT = 1024 * 1024
UTF8_MOST = 4
"""Bytes that a character may take."""
SEALED = "field is immutable when `immutable` is set"


class ConfigMapKind(Kind):
    shares_on_update = True

    def validate(self, obj: Object, scene: Scene) -> Causes:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        problems: list[Cause] = []
        if data and not (names.are_config_keys(data) and data.keys().isdisjoint(binary)):
            problems += _check_keys("data", data, binary)
        if binary and not names.are_config_keys(binary):
            problems += _check_keys("binaryData", binary)
        if _is_too_large(data, binary):
            problems.append(causes.too_long("[]", SIZE_LIMIT))
        return problems

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        yield from self.validate_update(new, old, scene)
        yield from self.validate(new, scene)

    def validate_update(self, new: Object, old: Object, scene: Scene) -> Causes:
        return sealed(new, old, "data", "binaryData")


def _check_keys(
    field: str, keys: Iterable[str], taken: Container[str] = frozenset()
) -> Iterator[Cause]:
    for key in keys:
        for text in names.config_key_problems(key):
            yield causes.invalid(f"{field}[{key}]", key, text)
        if key in taken:
            why = "duplicate of key present in binaryData"
            yield causes.invalid(f"{field}[{key}]", key, why)


def _is_too_large(data: dict[str, str], binary: dict[str, str]) -> bool:
    letters = sum(map(len, data.values())) + sum(map(len, binary.values()))
    if letters * UTF8_MOST <= SIZE_LIMIT:
        return False
    size = sum(len(value.encode()) for value in data.values())
    return size + sum(len(b64decode(value)) for value in binary.values()) > SIZE_LIMIT


def sealed(new: Object, old: Object, *fields: str) -> list[Cause]:
    """Causes for changes of an immutable ConfigMap or Secret."""
    if not old.get("immutable"):
        return []
    problems = [] if new.get("immutable") else [causes.forbidden("immutable", SEALED)]
    changed = [field for field in fields if (new.get(field) or {}) != (old.get(field) or {})]
    return problems + [causes.forbidden(field, SEALED) for field in changed]
