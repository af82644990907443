"""The ways to convert kubeconfigs: a function a strategy, and the one table of them. Pure.

They work on the files as written, so what we do not know about stays in them.
"""

from __future__ import annotations

import base64
import copy
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvestigate.client.kubeconfig import alternatives
from kvestigate.errors import InputError, UsageError
from kvestigate.kubeconfigs.fields import DATA, PATHS

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Given:
    """A kubeconfig file as it is."""

    path: Path
    config: Raw = field(repr=False)


@dataclass(frozen=True, slots=True)
class Request:
    """What a strategy is asked to do."""

    given: tuple[Given, ...]
    context: str = ""
    """Empty: the current one."""
    name: str = ""
    """The entry to rename."""
    new_name: str = ""
    kind: str = "context"
    """Of the entry to rename: `context`, `cluster` or `user`."""
    read: Callable[[Path], bytes] = Path.read_bytes
    """How the files that a kubeconfig names are read."""

    @property
    def one(self) -> Given:
        if len(self.given) != 1:
            names = ", ".join(str(given.path) for given in self.given)
            raise UsageError(
                f"this strategy converts one file, not {len(self.given)}: {names}",
                hint="name one file, or merge them first: kvestigate kubeconfig convert merge",
            )
        return self.given[0]


@dataclass(frozen=True, slots=True)
class Made:
    """What comes of it."""

    configs: dict[str, Raw] = field(repr=False)
    """File name -> kubeconfig; the name is empty for the one that takes the place of the old."""
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    """File name -> content, beside the kubeconfig."""
    notes: tuple[str, ...] = ()


def inline(request: Request) -> Made:
    """Files that the kubeconfig names become part of it."""
    given = request.one
    config, notes = copy.deepcopy(given.config), []
    for kind, body in _bodies(config):
        for name in PATHS.get(kind, ()):
            path = body.pop(name, None)
            if not path:
                continue
            content = _read(request, given.path.absolute().parent / path, name)
            if name in DATA:
                body[DATA[name]] = base64.b64encode(content).decode()
            else:
                body["token"] = content.decode(errors="replace").strip()
                notes.append(f"{path} may be renewed by other programs; the copy will not be")
    return Made({"": config}, notes=tuple(notes))


def _read(request: Request, path: Path, name: str) -> bytes:
    try:
        return request.read(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", where=name) from error


def extract(request: Request) -> Made:
    """Certificates, keys and tokens become files beside the kubeconfig."""
    given = request.one
    config = copy.deepcopy(given.config)
    files: dict[str, bytes] = {}
    for kind, entry in _named(config):
        body = entry.get(kind) or {}
        for name in PATHS.get(kind, ()):
            data = body.pop(DATA.get(name, "token"), None)
            if not data:
                continue
            content = base64.b64decode(data) if name in DATA else str(data).encode()
            file = _free(f"{_safe(str(entry['name']))}-{_ENDINGS[name]}", files)
            files[file] = content
            body[name] = file
    return Made({"config": _absolute(given.path, config, files)}, files)


_ENDINGS = {
    "certificate-authority": "ca.crt",
    "client-certificate": "client.crt",
    "client-key": "client.key",
    "tokenFile": "token",
}


def minify(request: Request) -> Made:
    """One context, and only what it needs."""
    given = request.one
    return Made({"": _minified(given, request.context or _current(given))})


def _minified(given: Given, name: str) -> Raw:
    contexts = {str(entry["name"]): entry for entry in given.config.get("contexts") or ()}
    if name not in contexts:
        raise UsageError(
            f'{given.path}: there is no context "{name}"',
            hint=alternatives(name, contexts, "contexts"),
        )
    body = contexts[name].get("context") or {}
    config = copy.deepcopy(given.config)
    config["contexts"] = [entry for entry in config["contexts"] if entry["name"] == name]
    for plural, key in (("clusters", "cluster"), ("users", "user")):
        kept = [entry for entry in config.get(plural) or () if entry["name"] == body.get(key)]
        config[plural] = kept
    config["current-context"] = name
    return config


def _current(given: Given) -> str:
    name = given.config.get("current-context")
    if not name:
        raise UsageError(f"{given.path}: current-context is not set", hint="give --context NAME")
    return str(name)


def rename(request: Request) -> Made:
    """A context, cluster or user gets another name, wherever it is spoken of."""
    given, kind = request.one, request.kind
    if not request.new_name:
        raise UsageError("the new name is missing", hint="give --to NAME")
    old = request.name or (_current(given) if kind == "context" else "")
    config = copy.deepcopy(given.config)
    entries = {str(entry["name"]): entry for entry in config.get(f"{kind}s") or ()}
    if old not in entries:
        raise UsageError(
            f'{given.path}: there is no {kind} "{old}"',
            hint=f"give --name NAME; {alternatives(old, entries, f'{kind}s')}",
        )
    if request.new_name in entries:
        raise UsageError(
            f'{given.path}: a {kind} "{request.new_name}" already exists',
            hint="choose another name",
        )
    _give_name(config, kind, entries[old], request.new_name)
    return Made({"": config})


def _give_name(config: Raw, kind: str, entry: Raw, name: str) -> None:
    old, entry["name"] = entry["name"], name
    if kind == "context" and config.get("current-context") == old:
        config["current-context"] = name
    for context in config.get("contexts") or ():
        body = context.get("context") or {}
        if kind != "context" and body.get(kind) == old:
            body[kind] = name


def merge(request: Request) -> Made:
    """Several kubeconfigs become one; of two that share a name, the later is renamed."""
    merged: Raw = {"apiVersion": "v1", "kind": "Config"}
    notes: list[str] = []
    for given in request.given:
        config = _absolute(given.path, copy.deepcopy(given.config))
        for kind, entry in list(_named(config)):
            taken = {entry["name"]: entry for entry in merged.get(f"{kind}s") or ()}
            own = {entry["name"] for entry in config.get(f"{kind}s") or ()}
            if entry["name"] in taken and taken[entry["name"]] != entry:
                old = entry["name"]
                _give_name(config, kind, entry, _another(old, given.path, taken.keys() | own))
                notes.append(f'{kind} "{old}" of {given.path} is now "{entry["name"]}"')
        _add(merged, config)
    return Made({"": merged}, notes=tuple(notes))


def _add(merged: Raw, config: Raw) -> None:
    for key, value in config.items():
        if key in ("clusters", "users", "contexts"):
            entries = merged.setdefault(key, [])
            entries += [entry for entry in value or () if entry not in entries]
        else:
            merged.setdefault(key, value)


def _another(name: str, path: Path, taken: Any) -> str:
    stem = _safe(path.stem)
    names = (f"{name}-{stem}" + (f"-{count}" if count else "") for count in range(len(taken) + 1))
    return next(name for name in names if name not in taken)


def split(request: Request) -> Made:
    """A file for each context."""
    given = request.one
    configs: dict[str, Raw] = {}
    for context in given.config.get("contexts") or ():
        name = str(context["name"])
        file = _free(f"{_safe(name)}.yaml", configs)
        configs[file] = _absolute(given.path, _minified(given, name))
    if not configs:
        raise UsageError(f"{given.path}: there are no contexts to split")
    return Made(configs)


def with_token(request: Request, user: str, login: Raw) -> Made:
    """A user logs in with what the plugin said, and no longer with the plugin."""
    given = request.one
    config = copy.deepcopy(given.config)
    for entry in config.get("users") or ():
        if entry["name"] == user:
            entry["user"].pop("exec", None)
            entry["user"].update(login)
    return Made({"": config})


def absolute_paths(path: Path, config: Raw) -> Raw:
    """For a kubeconfig that goes elsewhere: what is relative to the old place is so no more."""
    return _absolute(path, copy.deepcopy(config))


def _absolute(path: Path, config: Raw, beside: Any = ()) -> Raw:
    base = path.absolute().parent
    for kind, body in _bodies(config):
        for name in PATHS.get(kind, ()):
            if body.get(name) and body[name] not in beside:
                body[name] = os.path.normpath(base / body[name])
        plugin = body.get("exec") if kind == "user" else None
        if isinstance(plugin, dict) and os.sep in str(plugin.get("command") or ""):
            plugin["command"] = os.path.normpath(base / plugin["command"])
    return config


def _named(config: Raw) -> Iterator[tuple[str, Raw]]:
    for plural in ("clusters", "users", "contexts"):
        for entry in config.get(plural) or ():
            yield plural.removesuffix("s"), entry


def _bodies(config: Raw) -> Iterator[tuple[str, Raw]]:
    for kind, entry in _named(config):
        if entry.get(kind):
            yield kind, entry[kind]


def _safe(name: str) -> str:
    """`name` as a file's: names of contexts are often URLs or ARNs."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "unnamed"


def _free(name: str, taken: Any) -> str:
    stem, dot, ending = name.rpartition(".")
    count = 1
    unique = name
    while unique in taken:
        count += 1
        unique = f"{stem}-{count}{dot}{ending}" if dot else f"{name}-{count}"
    return unique


STRATEGIES: dict[str, Callable[[Request], Made]] = {
    "inline": inline,
    "extract": extract,
    "minify": minify,
    "rename": rename,
    "merge": merge,
    "split": split,
}

EXEC_TOKEN = "exec-token"
"""The one strategy that runs something: see `plugin`."""

NAMES: Sequence[str] = (*STRATEGIES, EXEC_TOKEN)
INTO_DIRECTORY = frozenset({"extract", "split"})
"""They make several files."""
NEEDS_OUT = INTO_DIRECTORY | {"merge"}
