#!/usr/bin/env python3
"""Writes the facts table of built-in types, `src/kvestigate/kube/facts.json`.

    tools/facts.py            regenerate the table
    tools/facts.py --check    exit 1 and say what differs when the committed table is stale

Two development-only packages are the sources:

- `kubernetes-validate` holds the OpenAPI definitions of each Kubernetes release, with the
  `x-kubernetes-*` extensions (patch strategies, list types, group-version-kinds) but without
  paths and without defaults. The release read is `RELEASE`.
- `kubernetes`, the official client, is generated from the whole OpenAPI document: each
  method of its API modules names an HTTP method, a path, its parameters and the types of
  body and answer. They are read as text: importing it takes over a second.

The client is one minor release ahead of the one we serve, so the definitions decide: a route
is kept only if `RELEASE` defines its kind, and `/status` only if that kind has a `status` in
`RELEASE`. Alpha and beta versions are left out altogether, because an API server does not
serve them unless asked to; and so are definitions that nothing served refers to.

A field is one short string; the grammar is in `kvestigate.kube.facts`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RELEASE = "1.36"
TABLE = Path(__file__).parents[1] / "src" / "kvestigate" / "kube" / "facts.json"

Json = dict[str, Any]

MACHINERY = "io.k8s.apimachinery."
STABLE = re.compile(r"v\d+")
SCALARS = {
    ("string", None): "s",
    ("string", "byte"): "y",
    ("string", "date-time"): "t",
    ("integer", "int32"): "i",
    ("integer", "int64"): "l",
    ("number", "double"): "n",
    ("boolean", None): "b",
    ("object", None): "o",
}
UNIONS = {("string", "number"): "q", ("string", "integer"): "x"}

# The client types the answer of these as text, since they are streams; what discovery calls
# them is the type of their options.
CONNECT = {"attach": "Attach", "exec": "Exec", "portforward": "PortForward", "proxy": "Proxy"}

ITEM_VERBS = {
    "GET": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


# --- definitions -------------------------------------------------------------------------


def package(name: str) -> Path:
    """Where a package is installed, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"the package {name} is not installed")
    return Path(spec.origin).parent


def read_definitions() -> Json:
    schemas = package("kubernetes_validate") / "kubernetes-json-schema"
    path = schemas / f"v{RELEASE}.0-local" / "_definitions.json"
    definitions: Json = json.loads(path.read_bytes())["$defs"]
    return definitions


def referred(schema: Json) -> str | None:
    """The name of the definition that a schema refers to."""
    ref = schema.get("$ref")
    return None if ref is None else str(ref).rsplit("/", 1)[1]


def type_code(schema: Json) -> str:
    name = referred(schema)
    if name is not None:
        return f"#{name}"
    if "oneOf" in schema:
        first, second = (plain_type(choice) for choice in schema["oneOf"])
        return UNIONS[first, second]
    kind = plain_type(schema)
    if kind == "array":
        return "[" + type_code(schema["items"])
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return "{" + type_code(schema["additionalProperties"])
    if not kind:
        return "*"
    return SCALARS[kind, schema.get("format")]


def plain_type(schema: Json) -> str:
    """The type, without the `null` that the package adds to what is optional."""
    kind = schema.get("type") or ""
    return next(choice for choice in kind if choice != "null") if isinstance(kind, list) else kind


def field_code(schema: Json) -> str:
    parts = [type_code(schema)]
    strategy = schema.get("x-kubernetes-patch-strategy")
    if strategy:
        key = schema.get("x-kubernetes-patch-merge-key")
        parts.append(f"{strategy}={key}" if key else strategy)
    list_type = schema.get("x-kubernetes-list-type") or schema.get("x-kubernetes-map-type")
    if list_type:
        keys = schema.get("x-kubernetes-list-map-keys")
        parts.append(f"{list_type}={','.join(keys)}" if keys else list_type)
    return " ".join(parts)


def compact(name: str, schema: Json) -> Json:
    """One definition in the table's form."""
    row: Json = {}
    if "properties" in schema:
        row["f"] = {
            field_name: field_code(property_schema)
            for field_name, property_schema in sorted(schema["properties"].items())
        }
    else:
        # Both times have one format in the schema, but the finer must have six digits.
        row["t"] = "u" if name.endswith(".MicroTime") else type_code(schema)
    if schema.get("required"):
        row["r"] = sorted(schema["required"])
    if schema.get("x-kubernetes-map-type"):
        row["m"] = schema["x-kubernetes-map-type"]
    return row


def references(schema: Json) -> Iterator[str]:
    name = referred(schema)
    if name is not None:
        yield name
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from references(schema[inner])
    for property_schema in schema.get("properties", {}).values():
        yield from references(property_schema)


def reachable(definitions: Json, roots: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += references(definitions[name])
    return seen


# --- routes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One method of the client's API modules."""

    method: str
    path: str
    kind: str
    """The kind of its body, or else of its answer: `Deployment`, `Scale`, `str`."""
    watchable: bool


@dataclass
class Route:
    """What is known of one path, whatever the scope it is asked in."""

    kind: str = ""
    namespaced: bool = False
    verbs: set[str] = field(default_factory=set)
    subresources: dict[str, Route] = field(default_factory=dict)


METHOD = re.compile(r"\n    def (\w+)\(\n(.*?)\n    ?\) -> (\w+):", re.DOTALL)
REQUEST = re.compile(
    r"def _(\w+)_serialize\(.*?method='(\w+)',\s+resource_path='([^']+)'", re.DOTALL
)
BODY = re.compile(r"\n        body: (\w+),")
MODEL = re.compile(r"^[A-Za-z]*?V\d+(?:(?:alpha|beta)\d+)?([A-Z]\w*)$")
PATH = re.compile(
    r"^/apis?(?:/(?P<group>[a-z0-9.]+))?/(?P<version>v\d+)"
    r"(?P<namespaced>/namespaces/\{namespace\})?"
    r"/(?P<plural>[a-z]+)(?P<item>/\{name\})?(?:/(?P<subresource>[a-z]+))?$"
)


def kind_of(model: str) -> str:
    match = MODEL.match(model)
    return match[1] if match else model


def read_calls() -> Iterator[Call]:
    for module in sorted((package("kubernetes") / "client" / "api").glob("*_v*_api.py")):
        text = module.read_text()
        signatures = {
            name: (parameters, answer) for name, parameters, answer in METHOD.findall(text)
        }
        for name, method, path in REQUEST.findall(text):
            parameters, answer = signatures[name]
            body = BODY.search("\n" + parameters)
            model = body[1] if body and method in ("POST", "PUT") else answer
            yield Call(method, path, kind_of(model), "\n        watch: " in parameters)


def read_routes() -> dict[tuple[str, str, str], Route]:
    routes: dict[tuple[str, str, str], Route] = defaultdict(Route)
    for call in read_calls():
        match = PATH.match(call.path)
        if match is None:
            continue
        route = routes[match["group"] or "", match["version"], match["plural"]]
        route.namespaced |= bool(match["namespaced"])
        if match["subresource"]:
            subresource = route.subresources.setdefault(match["subresource"], Route())
            subresource.kind = subresource.kind or call.kind
            subresource.verbs |= {ITEM_VERBS[call.method]} if call.method in ITEM_VERBS else set()
        elif match["item"]:
            route.verbs.add(ITEM_VERBS[call.method])
            route.kind = call.kind if call.method == "GET" else route.kind
        else:
            route.verbs.add(COLLECTION_VERBS[call.method])
            route.verbs |= {"watch"} if call.watchable else set()
            route.kind = route.kind or (call.kind if call.method == "POST" else "")
    return routes


class Kinds:
    """The kinds that the release defines."""

    def __init__(self, definitions: Json) -> None:
        self.names: dict[tuple[str, str, str], str] = {}
        for name, schema in definitions.items():
            for gvk in schema.get("x-kubernetes-group-version-kind", ()):
                self.names.setdefault((gvk["group"], gvk["version"], gvk["kind"]), name)
        self.definitions = definitions

    def has_status(self, kind: tuple[str, str, str]) -> bool:
        return "status" in self.definitions[self.names[kind]].get("properties", {})

    def elsewhere(self, group: str, version: str, kind: str) -> tuple[str, str, str]:
        """A kind of this group and version, or the one stable kind of that name: `Scale`."""
        if (group, version, kind) in self.names:
            return group, version, kind
        found = [gvk for gvk in self.names if gvk[2] == kind and STABLE.fullmatch(gvk[1])]
        (only,) = found
        return only


def route_rows(kinds: Kinds) -> list[Json]:
    rows = []
    for (group, version, plural), route in sorted(read_routes().items()):
        gvk = (group, version, route.kind)
        if gvk not in kinds.names:
            continue
        row: Json = {
            "g": group,
            "v": version,
            "p": plural,
            "k": route.kind,
            "n": route.namespaced,
            "w": sorted(verbs_served(plural, route.verbs)),
        }
        subresources = {
            name: [*subresource_kind(kinds, gvk, name, subresource), *sorted(subresource.verbs)]
            for name, subresource in sorted(route.subresources.items())
            if name != "status" or kinds.has_status(gvk)
        }
        if subresources:
            row["s"] = subresources
        rows.append(row)
    return rows


def verbs_served(plural: str, verbs: set[str]) -> set[str]:
    # The document gives every list the `watch` parameter; this one computes its answer.
    return verbs - {"watch"} if plural == "componentstatuses" else verbs


def subresource_kind(
    kinds: Kinds, parent: tuple[str, str, str], name: str, route: Route
) -> tuple[str, str, str]:
    if name in CONNECT:
        return parent[0], parent[1], f"{parent[2]}{CONNECT[name]}Options"
    if name == "log":
        return parent
    return kinds.elsewhere(parent[0], parent[1], route.kind)


# --- the table ---------------------------------------------------------------------------


def build() -> Json:
    definitions = read_definitions()
    kinds = Kinds(definitions)
    routes = route_rows(kinds)
    kept = reachable(definitions, roots(kinds, routes))
    return {
        "release": RELEASE,
        "routes": routes,
        "kinds": {
            "/".join(gvk): name
            for gvk, name in sorted(kinds.names.items())
            # DeleteOptions and WatchEvent claim every group: once is enough for those
            if name in kept and (gvk[:2] == ("", "v1") or not name.startswith(MACHINERY))
        },
        "definitions": {name: compact(name, definitions[name]) for name in sorted(kept)},
    }


def roots(kinds: Kinds, routes: list[Json]) -> Iterator[str]:
    """What requests and answers are made of: the kinds, their lists, and the shared types."""
    for row in routes:
        group, version, kind = row["g"], row["v"], row["k"]
        yield kinds.names[group, version, kind]
        if (group, version, f"{kind}List") in kinds.names:
            yield kinds.names[group, version, f"{kind}List"]
        for subresource in row.get("s", {}).values():
            if tuple(subresource[:3]) in kinds.names:
                yield kinds.names[tuple(subresource[:3])]
    yield from (name for name in kinds.definitions if name.startswith(MACHINERY))


def encode(table: Json) -> bytes:
    """One line a route, kind or definition: small, and a regenerated table has a readable diff."""
    compactly = json.JSONEncoder(separators=(",", ":")).encode

    def lines(rows: Json) -> str:
        return ",\n".join(f"{compactly(name)}:{compactly(row)}" for name, row in rows.items())

    routes = ",\n".join(compactly(row) for row in table["routes"])
    text = (
        f'{{"release":{compactly(table["release"])},\n'
        f'"routes":[\n{routes}\n],\n'
        f'"kinds":{{\n{lines(table["kinds"])}\n}},\n'
        f'"definitions":{{\n{lines(table["definitions"])}\n}}}}\n'
    )
    return text.encode()


def differences(old: Json, new: Json) -> Iterator[str]:
    """The lines of a summary: `+` added, `-` removed, `~` changed."""
    yield from changed("definition", old["definitions"], new["definitions"])
    yield from changed("kind", old["kinds"], new["kinds"])
    yield from changed("route", by_path(old["routes"]), by_path(new["routes"]))
    if old["release"] != new["release"]:
        yield f"~ release {old['release']} -> {new['release']}"


def changed(what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            sign = "+" if key not in old else "-" if key not in new else "~"
            yield f"{sign} {what} {key}"


def by_path(routes: list[Json]) -> Json:
    return {f"{row['g']}/{row['v']}/{row['p']}": row for row in routes}


def check(table: Json, path: Path) -> int:
    if path.exists() and path.read_bytes() == encode(table):
        return 0
    print(f"{path.name} is stale; run `make facts` and commit it", file=sys.stderr)
    if path.exists():
        for line in differences(json.loads(path.read_bytes()), table):
            print(f"  {line}", file=sys.stderr)
    return 1


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Regenerate or check the facts table.")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 when stale")
    parser.add_argument("--table", type=Path, default=TABLE, help="the table's file")
    options = parser.parse_args(arguments)
    table = build()
    if options.check:
        return check(table, options.table)
    options.table.write_bytes(encode(table))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
