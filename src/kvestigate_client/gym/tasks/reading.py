"""What tasks read from snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvestigate_client.results import Object, Snapshot

CONTAINER = "template.spec.containers.0"
"""The one container of the Deployments that tasks are about, below their spec."""

_UNITS: Mapping[str, float] = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "": 1.0}


def template_spec(deployment: Object) -> dict[str, Any]:
    """The pods of a Deployment, as it describes them."""
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def containers(deployment: Object) -> Sequence[dict[str, Any]]:
    found: Sequence[dict[str, Any]] = template_spec(deployment)["containers"]
    return found


def requested_cpus(deployment: Object) -> float:
    """By the first container; 0 if it asks for nothing."""
    resources = containers(deployment)[0].get("resources") or {}
    return cpus(str((resources.get("requests") or {}).get("cpu", "0")))


def cpus(text: str) -> float:
    """`500m` as 0.5; more than anybody has if it is written in a way that nobody writes CPUs."""
    number = text.rstrip("".join(_UNITS))
    try:
        return float(number) * _UNITS[text[len(number) :]]
    except (KeyError, ValueError):
        return float("inf")


def pods_of(snapshot: Snapshot, name: str) -> list[Object]:
    """The pods of a Deployment, by who owns them and not by what they are labelled."""
    sets = {
        each["metadata"]["uid"]
        for each in snapshot.items("replicasets", "default")
        if _owner(each) == ("Deployment", name)
    }
    return [
        pod
        for pod in snapshot.items("pods", "default")
        if any(each["uid"] in sets for each in pod["metadata"].get("ownerReferences") or ())
    ]


def _owner(obj: Object) -> tuple[str, str] | None:
    for each in obj["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            return each["kind"], each["name"]
    return None
