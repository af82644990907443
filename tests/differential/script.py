"""Scripts: what is asked, step by step. One YAML file a topic, a list of scripts in each.

A step is a mapping with one of the methods as a key and a path as its value:

    {post: ~/configmaps, body: configmap, set: {data.a: "1"}, keep: {rv: metadata.resourceVersion}}

- `~/pods` is in the script's own namespace, `~apps/v1/deployments` too; `{ns}` is its name.
- `body` is a fixture's name or a literal; `set` and `unset` change it at dotted paths, where a
  number is an index; `text` is sent as it is.
- `type` is the content type (short names: json, merge, strategic, apply, yaml), `accept`
  likewise (table, metadata, metadata-list, yaml); `as` is a user to impersonate, `groups` theirs.
- `keep` names values of the answer for `{name}` in later steps.
- `watch` collects `events` events. `until` is what to wait for where the real server takes its
  time (a new CRD, a new role): a status, or values at dotted paths of a body.
- `{converter}` is the URL of a conversion webhook, `{ca}` what verifies it.
- `quiet` steps set the scene: only their status is compared; `pick` compares parts of the body.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
TOPICS = HERE / "topics"
FIXTURES = HERE / "fixtures.yaml"

METHODS = ("get", "head", "post", "put", "patch", "delete", "watch", "options")
TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
    "yaml": "application/yaml",
}
ACCEPTS = {
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io",
    "metadata": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "metadata-list": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "yaml": "application/yaml",
}

_SCOPED = re.compile(r"/namespaces/\{ns\}/(?!finalize|status)")


@dataclass(frozen=True, slots=True)
class Step:
    method: str
    path: str
    """With `{names}` still in it."""
    body: Any = None
    """A JSON value, text, or None for no body at all."""
    headers: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)
    pick: tuple[str, ...] = ()
    events: int = 0
    until: int | Mapping[str, Any] = 0
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    topic: str
    name: str
    steps: tuple[Step, ...]
    managed: bool = False
    """Whether metadata.managedFields are compared."""

    @property
    def id(self) -> str:
        return f"{self.topic}/{self.name}"

    @property
    def namespaced(self) -> bool:
        """Whether it wants a namespace made for it."""
        return any(_SCOPED.search(step.path) for step in self.steps)

    @property
    def converts(self) -> bool:
        """Whether its definitions name the conversion webhook of `converter`."""
        return any("{converter}" in str(step.body) for step in self.steps)


@cache
def scripts() -> tuple[Script, ...]:
    """Every script, by topic and in the order of the files."""
    return tuple(script for path in sorted(TOPICS.glob("*.yaml")) for script in _topic(path))


def topics() -> list[str]:
    return sorted({script.topic for script in scripts()})


def _topic(path: Path) -> Iterator[Script]:
    for raw in _load(path):
        steps = tuple(_step(each, f"{path.stem}/{raw['name']}") for each in raw["steps"])
        yield Script(path.stem, raw["name"], steps, raw.get("managed", False))


def _step(raw: dict[str, Any], where: str) -> Step:
    raw = dict(raw)
    methods = [name for name in METHODS if name in raw]
    if len(methods) != 1:
        raise ValueError(f"{where}: a step needs one method, not {methods} in {raw}")
    method = methods[0]
    path = _path(raw.pop(method))
    headers = dict(raw.pop("headers", {}))
    if method == "patch":
        raw.setdefault("type", "merge")
    if media := raw.pop("type", ""):
        headers["content-type"] = TYPES.get(media, media)
    if accept := raw.pop("accept", ""):
        headers["accept"] = ACCEPTS.get(accept, accept)
    if user := raw.pop("as", ""):
        headers["impersonate-user"] = user
    if groups := raw.pop("groups", ""):
        headers["impersonate-group"] = groups
    pick = raw.pop("pick", ())
    step = Step(
        method.upper(),
        path,
        _body(raw),
        headers,
        raw.pop("keep", {}),
        (pick,) if isinstance(pick, str) else tuple(pick),
        raw.pop("events", 0),
        raw.pop("until", 0),
        raw.pop("quiet", False),
    )
    if raw:
        raise ValueError(f"{where}: unknown keys {sorted(raw)}")
    return step


def _path(short: str) -> str:
    if not short.startswith("~"):
        return short
    if short.startswith("~/"):
        return "/api/v1/namespaces/{ns}" + short[1:]
    group, version, rest = short[1:].split("/", 2)
    return f"/apis/{group}/{version}/namespaces/{{ns}}/{rest}"


def _body(raw: dict[str, Any]) -> Any:
    body, changes = raw.pop("body", None), raw.pop("set", {})
    removed, text = raw.pop("unset", []), raw.pop("text", None)
    if text is not None:
        return text
    if isinstance(body, str):
        body = fixtures()[body]
    body = copy.deepcopy(body)
    for path, value in changes.items():
        at, last = _reach(body, path)
        if isinstance(at, list) and last == len(at):
            at.append(value)
        else:
            at[last] = value
    for path in [removed] if isinstance(removed, str) else removed:
        at, last = _reach(body, path)
        del at[last]
    return body


def _reach(value: Any, path: str) -> tuple[Any, Any]:
    """The container that holds the last step of a dotted path, made on the way, and that step.

    A slash in place of a dot separates as well, for keys that have dots in them.
    """
    parts = path.split("/") if "/" in path else path.split(".")
    *way, last = [int(part) if part.isdecimal() else part for part in parts]
    for part in way:
        value = value[int(part)] if isinstance(value, list) else value.setdefault(part, {})
    return value, last


@cache
def fixtures() -> dict[str, Any]:
    return dict(_load(FIXTURES))


def _load(path: Path) -> Any:
    with path.open() as file:
        return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
