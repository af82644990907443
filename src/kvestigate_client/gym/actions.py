"""What an agent can do in one turn: one action, written as JSON.

    {"verb": "apply", "object": {...}}                                  a manifest
    {"verb": "patch", "object": {...}}                                  a merge patch by manifest
    {"verb": "scale", "object": {...}, "replicas": 3}
    {"verb": "delete", "object": {...}}
    {"verb": "wait"}                                                    let time pass

`object` names what it is about by apiVersion, kind and metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from numpy.random import Generator

from kvestigate_client.failures import Invalid
from kvestigate_client.planes import Plane
from kvestigate_client.results import Object

Action = Mapping[str, Any]

VERBS = ("apply", "patch", "scale", "delete", "wait")

_KINDS = (("apps/v1", "Deployment"), ("v1", "Pod"), ("v1", "Service"), ("v1", "ConfigMap"))
_NAMES = ("web", "api", "db", "cache", "worker")
_REPLICAS = 10


def apply(obj: Object) -> Action:
    return {"verb": "apply", "object": obj}


def patch(obj: Object) -> Action:
    """Merge what this manifest says into the object it names."""
    return {"verb": "patch", "object": obj}


def scale(obj: Object, replicas: int) -> Action:
    return {"verb": "scale", "object": obj, "replicas": replicas}


def delete(obj: Object) -> Action:
    return {"verb": "delete", "object": obj}


WAIT: Action = {"verb": "wait"}


def draw(random: Generator) -> Action:
    """Some action; what it is about need not be there, nor be whole."""
    verb = random.choice(VERBS)
    if verb == "wait":
        return WAIT
    api_version, kind = random.choice(_KINDS)
    named = {"name": str(random.choice(_NAMES)), "namespace": "default"}
    obj = {"apiVersion": str(api_version), "kind": str(kind), "metadata": named}
    if verb == "scale":
        return scale(obj, int(random.integers(_REPLICAS)))
    return {"verb": str(verb), "object": obj}


def parse(text: str) -> Action:
    """What an agent wrote; Invalid if it is no action."""
    try:
        action = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"an action is JSON: {error}") from None
    if not isinstance(action, dict) or action.get("verb") not in VERBS:
        raise Invalid(f"an action has a verb, one of {', '.join(VERBS)}")
    if action["verb"] != "wait" and not isinstance(action.get("object"), dict):
        raise Invalid(f"{action['verb']}: the object it is about is missing")
    if action["verb"] == "scale" and not _is_count(action.get("replicas")):
        raise Invalid("scale: replicas is missing, or is not a number from 0 on")
    return action


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def perform(plane: Plane, action: Action) -> None:
    """Do it; PlaneError if the plane refuses."""
    verb = action["verb"]
    if verb == "apply":
        plane.apply(action["object"])
    elif verb == "delete":
        plane.delete(action["object"])
    elif verb == "patch":
        plane.merge(action["object"])
    elif verb == "scale":
        named = {key: action["object"].get(key) for key in ("apiVersion", "kind", "metadata")}
        plane.merge({**named, "spec": {"replicas": action["replicas"]}})
