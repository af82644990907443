"""What the fields of built-in objects are for: the text of `kubectl explain`.

The texts are those of the Kubernetes documentation, and are not part of this distribution. They
are read from the package `kubernetes-validate` if it is installed (the extra `explain`), in the
release that planes speak. Without it, or without that release in it, nothing is described.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from kvestigate.kube import facts

PACKAGE = "kubernetes_validate"


class Described(msgspec.Struct, frozen=True):
    """The texts of a definition."""

    description: str = ""
    properties: dict[str, Described] = {}

    def field(self, name: str) -> str:
        return self.properties[name].description if name in self.properties else ""


class _Document(msgspec.Struct):
    definitions: dict[str, Described] = msgspec.field(name="$defs")


NOTHING = Described()


def of(name: str) -> Described:
    """The texts of a definition, by its name in OpenAPI documents."""
    return _installed().get(name, NOTHING)


@cache
def _installed() -> Mapping[str, Described]:
    spec = importlib.util.find_spec(PACKAGE)
    return {} if spec is None or spec.origin is None else read(Path(spec.origin).parent)


def read(package: Path) -> Mapping[str, Described]:
    """All texts of the package in a directory; none if it does not have them as we know it."""
    major, minor = facts.release().split(".")[:2]
    release = package / "kubernetes-json-schema" / f"v{major}.{minor}.0-local"
    try:
        data = (release / "_definitions.json").read_bytes()
        return msgspec.json.decode(data, type=_Document).definitions
    except (OSError, msgspec.DecodeError):
        return {}
