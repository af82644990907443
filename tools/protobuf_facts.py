#!/usr/bin/env python3
"""Writes the protobuf field numbers of the built-in types, `plane/request/protobuf/numbers.json`.

    tools/protobuf_facts.py [--check] [MODULES]    default: $(go env GOMODCACHE)/k8s.io

Names and types of the fields are in the facts table; what protobuf adds is a number for each,
and that Go declares beside the JSON name in the field's tag. A row lists the JSON names of one
definition in the order of their numbers:

    name image - command        a dash stands for a number that is not used
    name ( hostPath emptyDir )  a struct that JSON spreads over its parent and protobuf nests

`--check` exits 1 when the committed table is stale.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from zeros import directory, structs

from kvestigate.kube import facts

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src" / "kvestigate/cluster/plane/request/protobuf/numbers.json"

FIELD = re.compile(r"^\s+(?:\w+\s+)?(\S+)\s+`([^`]*)`", re.M)
TAG = re.compile(r'(json|protobuf):"([^"]*)"')


def fetched() -> Path:
    """The modules that `tools/kubernetes/build` has fetched."""
    cache = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    return Path(cache.stdout.strip()) / "k8s.io"


def words(name: str, known: dict[str, str]) -> list[str]:
    """The row of a Go struct."""
    numbered: dict[int, list[str]] = {}
    for type_, tags in FIELD.findall(known.get(name, "")):
        tag = dict(TAG.findall(tags))
        parts = tag.get("protobuf", "").split(",")
        if len(parts) < 2:
            continue  # kind and apiVersion travel in the envelope
        label = tag["json"].partition(",")[0]
        spread = type_.rpartition(".")[2].lstrip("*")
        numbered[int(parts[1])] = [label] if label else ["(", *words(spread, known), ")"]
    row: list[str] = []
    for number in range(1, max(numbered, default=0) + 1):
        row += numbered.get(number, ["-"])
    return row


def build(root: Path) -> dict[str, str]:
    packages: dict[str, dict[str, str]] = {}
    table = {}
    for name in sorted(facts.definition_names()):
        if name.endswith("List") or facts.definition(name).scalar is not None:
            continue  # clients send no lists, and each scalar has a form of its own
        package, _, struct = name.rpartition(".")
        if package not in packages:
            packages[package] = structs(root / directory(package))
        table[name] = " ".join(words(struct, packages[package]))
    return table


def encode(table: dict[str, str]) -> str:
    return json.dumps(table, indent=0, separators=(",", ":")) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Regenerate or check the protobuf numbers.")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 when stale")
    parser.add_argument("modules", nargs="?", type=Path, help="where the Go modules are")
    options = parser.parse_args()
    text = encode(build(options.modules or fetched()))
    if options.check:
        return int(TABLE.read_text() != text)
    TABLE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
