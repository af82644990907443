#!/usr/bin/env python3
"""Writes what fields may be and are by default, `src/kvestigate/kube/choices.json`.

    tools/choices.py KUBECTL [KUBECONFIG]

The source is the OpenAPI documents of the API server that kubectl talks to, because no package
has them: enumerations, defaults and unions of the definitions in the facts table, by the path of
the field (`ports[].protocol`, `data{}`; empty for the definition itself). Texts are left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kvestigate.kube import facts

TABLE = Path(__file__).parents[1] / "src" / "kvestigate" / "kube" / "choices.json"
KEYS = ("default", "enum", "x-kubernetes-unions")

Json = dict[str, Any]


def said(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """What a schema and those in it say of their values, by path."""
    if found := {key: schema[key] for key in KEYS if key in schema}:
        yield path, found
    for name, inner in (schema.get("properties") or {}).items():
        yield from said(inner, f"{path}.{name}" if path else name)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            yield from said(schema[key], path + mark)


def main(kubectl: str, *kubeconfig: str) -> None:
    command = [kubectl, *(f"--kubeconfig={path}" for path in kubeconfig), "get", "--raw"]

    def get(path: str) -> Json:
        answer = subprocess.run([*command, path], check=True, capture_output=True, timeout=60)
        found: Json = json.loads(answer.stdout)
        return found

    table: dict[str, Json] = {}
    known = set(facts.definition_names())
    for group in get("/openapi/v3")["paths"]:
        document = get(f"/openapi/v3/{group}")
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            if name in known and (found := dict(said(schema))):
                table[name] = dict(sorted(found.items()))
    text = json.dumps(dict(sorted(table.items())), separators=(",", ":"))
    TABLE.write_text(text.replace('},"io.', '},\n"io.') + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
