"""What pods have in common: what was found out about one holds for those like it. Pure.

The pods of a workload differ in what each of them runs and in the name of the volume with its
token, and no rule asks for more of these than that they are there and named well.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

Object = dict[str, Any]

TOKEN_VOLUME = "kube-api-access-"
"""Starts the name of the volume that every pod is given for its token."""

_encode = msgspec.json.Encoder().encode
_is_token_volume = re.compile(f"{TOKEN_VOLUME}[a-z0-9]{{5}}").fullmatch
_WORDS = ("args", "command")
_UNJUDGED = (*_WORDS, "env")
_ANY_NAME = b"\0"
"""Stands for the name of that volume: JSON has no such byte."""


def outline(spec: Object, pod: Object) -> bytes:
    """Equal for specs that are valid together or not at all; `pod` is the pod's metadata."""
    kept = {**spec, "containers": [*map(_container, spec["containers"] or ())]}
    if "initContainers" in spec:
        kept["initContainers"] = [*map(_container, spec["initContainers"])]
    encoded = _encode(kept)
    for volume in spec.get("volumes") or ():
        if _is_token_volume(volume["name"]):
            encoded = encoded.replace(volume["name"].encode(), _ANY_NAME)
            break
    # The claims of ephemeral volumes are named after their pod.
    return encoded + pod.get("name", "").encode() if b'"ephemeral"' in encoded else encoded


def likeness(spec: Object) -> bytes:
    """Equal for specs that have fields and elements of lists in the same places."""
    alike = {**spec, "containers": [*map(_unsaid, spec["containers"] or ())]}
    if "initContainers" in spec:
        alike["initContainers"] = [*map(_unsaid, spec["initContainers"])]
    return _encode(alike)


def _unsaid(container: Object) -> Object:
    """Without the words of a command, which are owned all together."""
    kept = container.copy()
    for name in _WORDS:
        if name in kept:
            kept[name] = True
    return kept


def _container(container: Object) -> Object:
    kept = container.copy()
    for name in _UNJUDGED:
        kept.pop(name, None)
    if "env" in container:
        kept["env"] = [each if "valueFrom" in each else each["name"] for each in container["env"]]
    return kept
