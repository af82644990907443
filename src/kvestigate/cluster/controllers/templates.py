"""Pods from templates, and the hash that tells templates apart. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kvestigate.client.cache import Named
from kvestigate.cluster.controllers.kinds import Kind
from kvestigate.cluster.controllers.objects import Template
from kvestigate.cluster.controllers.owners import controller_reference

HASH_LABEL = "pod-template-hash"

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels and look-alikes, so that no name becomes a word."""


def safe_text(number: int) -> str:
    """A number as it appears in generated names: a letter for each decimal digit."""
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def fnv32a(data: bytes) -> int:
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def template_hash(template: Mapping[str, Any], collisions: int | None = None) -> str:
    """A short name of a template; `collisions` gives it another one.

    Upstream hashes its memory layout, which nobody can reproduce and nobody needs to: templates
    are compared as they are, and the hash only has to be stable and of this form.
    """
    data = msgspec.json.encode(template, order="sorted")
    if collisions is not None:
        data += str(collisions).encode()
    return safe_text(fnv32a(data))


def without_hash(template: Template) -> Template:
    """A ReplicaSet's template as the Deployment wrote it."""
    metadata = dict(template.get("metadata") or {})
    labels = {
        key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL
    }
    metadata["labels"] = labels
    if not labels:
        del metadata["labels"]
    return {**template, "metadata": metadata}


def same_template(left: Template, right: Template) -> bool:
    """Whether two templates make the same pods, whatever their hash labels say."""
    return _comparable(left) == _comparable(right)


def _comparable(template: Template) -> Template:
    bare = without_hash(template)
    metadata = {
        key: value
        for key, value in bare["metadata"].items()
        if value is not None and key != "creationTimestamp"
    }
    return {**bare, "metadata": metadata}


def pod_from(
    template: Template, kind: Kind[Any], owner: Named, *, name: str | None = None
) -> dict[str, Any]:
    """The pod that a template makes for `owner`; without a name, one is generated."""
    given = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "namespace": owner.metadata.namespace,
        "labels": dict(given.get("labels") or {}),
        "annotations": dict(given.get("annotations") or {}),
        "ownerReferences": [controller_reference(kind, owner)],
    }
    if given.get("finalizers"):
        metadata["finalizers"] = list(given["finalizers"])
    if name is None:
        metadata["generateName"] = f"{owner.metadata.name}-"
    else:
        metadata["name"] = name
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": dict(template.get("spec") or {}),
    }
