#!/usr/bin/env python3
"""Writes which fields of the built-in types survive being empty, `src/kvestigate/kube/zeros.json`.

    tools/zeros.py [MODULES]    default: $(go env GOMODCACHE)/k8s.io

No schema says what a server leaves out when it encodes an object: that follows from how Go
declares the field. So the declarations themselves are read, from the modules that
`tools/kubernetes/build` has fetched, and two short lists are kept of each definition:

    p  present always: declared neither as a pointer nor to be omitted, or a struct in place
    k  kept if sent: behind a pointer, so that zero and absent are two values
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kvestigate.kube import facts
from kvestigate.kube.facts import Field, Type

RELEASE = "v0.36.4"
TABLE = Path(__file__).parents[1] / "src" / "kvestigate" / "kube" / "zeros.json"

STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
FIELD = re.compile(r'^\s+(?:(\w+)\s+)?(\S+)\s+`json:"([^"]*)"', re.M)
# Types that Go keeps in a struct though JSON sees a scalar.
STRUCTS = (Type.QUANTITY, Type.INT_OR_STRING, Type.TIME, Type.MICROTIME)


class Declared(NamedTuple):
    json: str
    pointer: bool
    omit: frozenset[str]


def modules() -> Path:
    if len(sys.argv) > 1:
        return Path(sys.argv[1])
    cache = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    return Path(cache.stdout.strip()) / "k8s.io"


def directory(package: str) -> Path:
    """`io.k8s.api.core.v1` -> `api@v0.36.4/core/v1`"""
    _, _, module, *rest = package.split(".")
    return Path(f"{module}@{RELEASE}", *rest)


def structs(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for source in sorted(path.glob("*.go")):
        if not source.name.endswith("_test.go"):
            found.update(STRUCT.findall(source.read_text()))
    return found


def declared(name: str, known: dict[str, str]) -> Iterator[Declared]:
    for _, type_, tag in FIELD.findall(known.get(name, "")):
        label, *options = tag.split(",")
        if "inline" in options or not label:
            yield from declared(type_.rpartition(".")[2], known)
        else:
            yield Declared(label, type_.startswith("*"), frozenset(options))


def is_struct(field: Field) -> bool:
    if field.type is not Type.DEFINED:
        return field.type in STRUCTS
    scalar = facts.definition(field.definition).scalar
    return scalar is None or scalar in STRUCTS


def row(name: str, known: dict[str, str]) -> dict[str, str]:
    fields = facts.definition(name).fields
    present, kept = [], []
    for each in declared(name.rpartition(".")[2], known):
        field = fields.get(each.json)
        if field is None or each.json in ("kind", "apiVersion"):
            continue
        if each.pointer:
            if not is_struct(field):
                kept.append(each.json)
        elif "omitzero" not in each.omit and ("omitempty" not in each.omit or is_struct(field)):
            present.append(each.json)
    return {code: " ".join(names) for code, names in (("p", present), ("k", kept)) if names}


def main() -> None:
    root = modules()
    packages: dict[str, dict[str, str]] = {}
    table = {}
    for name in sorted(facts.definition_names()):
        if name.endswith("List"):
            continue  # lists are written by the server itself
        package = name.rpartition(".")[0]
        if package not in packages:
            packages[package] = structs(root / directory(package))
        found = row(name, packages[package])
        if found:
            table[name] = found
    TABLE.write_text(json.dumps(table, indent=0, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
