"""Which kinds differ from the generic one. One list, no import side effects."""

from __future__ import annotations

from functools import cache

from kvestigate.kube import builtins
from kvestigate.plane.kinds.kind import Kind
from kvestigate.plane.kinds.namespaces import NamespaceKind

KINDS: dict[tuple[str, str], type[Kind]] = {
    ("", "namespaces"): NamespaceKind,
}


@cache
def builtin() -> dict[tuple[str, str, str], Kind]:
    """Every built-in kind by (group, version, plural)."""
    return {
        (resource.group, resource.version, resource.plural): KINDS.get(
            (resource.group, resource.plural), Kind
        )(resource)
        for resource in builtins.registry()
    }
