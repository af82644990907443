"""What two kubeconfigs say differently, with secrets as fingerprints. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kvestigate.kube.redaction import fingerprint
from kvestigate.kubeconfigs.fields import DATA, GUESSABLE, PATHS, SHOWN

ADDED, REMOVED, CHANGED, RENAMED = "added", "removed", "changed", "renamed"

Raw = Mapping[str, Any]
ReadFile = Callable[[str], bytes | None]
"""The content of a path that a kubeconfig names, None if it cannot be read."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field, before and after; None where it is not set."""

    path: str
    """`exec.command`"""
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class EntryChange:
    kind: str
    """`cluster`, `user`, `context`, or `config` for the file's own fields."""
    name: str
    what: str
    """`added`, `removed`, `changed`, or `renamed` from one name to another."""
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    entries: tuple[EntryChange, ...]

    def __bool__(self) -> bool:
        return bool(self.entries)


@dataclass(frozen=True, slots=True)
class _Leaf:
    value: object = field(repr=False)
    """What is compared."""
    shown: str = field(compare=False)


_Entry = dict[str, _Leaf]
_Config = dict[tuple[str, str], _Entry]


def difference(
    before: Raw, after: Raw, read_before: ReadFile | None = None, read_after: ReadFile | None = None
) -> Difference:
    """Order, empty fields and the way of writing do not count.

    With `read`, neither does whether a certificate is in the file or beside it.
    """
    old, new = _normal(before, read_before), _normal(after, read_after)
    renames = _renames(old, new)
    entries = [EntryChange(kind, f"{a} -> {b}", RENAMED) for (kind, a), (_, b) in renames.items()]
    gone, come = set(renames), set(renames.values())
    for key in dict.fromkeys((*old, *new)):
        if key in gone or key in come:
            continue
        changes = tuple(_changes(old.get(key, {}), new.get(key, {})))
        what = REMOVED if key not in new else ADDED if key not in old else CHANGED
        if changes or what != CHANGED:
            entries.append(EntryChange(*key, what, changes))
    return Difference(tuple(entries))


def _renames(old: _Config, new: _Config) -> dict[tuple[str, str], tuple[str, str]]:
    """What is gone under one name and there under another, and otherwise the same."""
    renames: dict[tuple[str, str], tuple[str, str]] = {}
    come = [key for key in new if key not in old]
    for key in old:
        same = [
            entry
            for entry in come
            if key not in new and entry[0] == key[0] and new[entry] == old[key]
        ]
        if same and old[key]:
            renames[key] = same[0]
            come.remove(same[0])
    return renames


def _changes(old: _Entry, new: _Entry) -> Iterator[FieldChange]:
    for path in dict.fromkeys((*old, *new)):
        left, right = old.get(path), new.get(path)
        if left != right:
            before = None if left is None else left.shown
            after = None if right is None else right.shown
            same = before is not None and before == after
            yield FieldChange(path, before, f"{after}, other content" if same else after)


def _normal(config: Raw, read: ReadFile | None) -> _Config:
    entries: _Config = {}
    top = {
        key: value
        for key, value in config.items()
        if key not in ("clusters", "users", "contexts", "apiVersion", "kind")
    }
    entries["config", ""] = dict(_leaves("", top))
    for plural in ("contexts", "clusters", "users"):
        kind = plural.removesuffix("s")
        for item in config.get(plural) or ():
            body = dict(item.get(kind) or {})
            kept = _with_contents(kind, body, read) if read is not None else {}
            entries[kind, str(item["name"])] = {**dict(_leaves("", body)), **kept}
    return entries


def _with_contents(kind: str, body: dict[str, Any], read: ReadFile) -> _Entry:
    """The contents of files and embedded data under one name, taken out of `body`."""
    fields: _Entry = {}
    for path_field in PATHS.get(kind, ()):
        data_field = DATA.get(path_field, "token")
        content = _embedded(body.get(data_field), data_field)
        if content is None and body.get(path_field):
            content = read(str(body[path_field]))
        if content is not None:
            body.pop(path_field, None)
            body.pop(data_field, None)
            name = path_field if path_field in DATA else "token"
            fields[name] = _Leaf(content, fingerprint(content))
    return fields


def _embedded(value: Any, name: str) -> bytes | None:
    if not isinstance(value, str) or not value:
        return None
    if name == "token":
        return value.encode()
    try:
        return base64.b64decode(value)
    except (ValueError, binascii.Error):
        return None


def _leaves(path: str, value: Any) -> Iterator[tuple[str, _Leaf]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), inner)
    elif value not in (None, "", [], False):
        yield path, _Leaf(value, shown(path, value))


def shown(path: str, value: Any) -> str:
    """What of a field may be seen."""
    text = value if isinstance(value, str) else json.dumps(value)
    if path in SHOWN:
        return text
    if path == "proxy-url":
        parts = urlsplit(text)
        return text if parts.password is None else _without_password(text)
    if path in GUESSABLE:
        return "(hidden)"
    return fingerprint(_decoded(text) if path.endswith("-data") else text)


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    address = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username}:...@{address}").geturl()


def _decoded(text: str) -> bytes:
    """The content, so that its fingerprint is that of the file."""
    try:
        return base64.b64decode(text)
    except (ValueError, binascii.Error):
        return text.encode()


def beside(file: str, read: ReadFile) -> ReadFile:
    """`read` for the paths of one kubeconfig, which are relative to it."""
    # normpath, as kubectl joins lexically.
    directory = Path(file).absolute().parent
    return lambda path: read(os.path.normpath(directory / path))
