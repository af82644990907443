"""What must be as it was: a score that is reached by harm is none. Pure.

A guard compares where an episode started with where it is, and says what is wrong, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kvestigate_client.results import Object, Snapshot

Guard = Callable[[Snapshot, Snapshot], str]
"""(start, now) to what has been harmed; nothing has if it is empty."""

_ANNOTATIONS = "template.metadata.annotations"
"""`kubectl rollout restart` writes there; it does no harm."""

_RUNS = ("image", "command", "args", "resources", "securityContext")
"""What makes a container what it is."""


def only(resource: str, name: str, *fields: str, namespace: str | None = "default") -> Guard:
    """There still is such an object, and of its spec nothing but these fields has changed.

    only("deployments", "web", "replicas", "template.spec.containers.0.resources")
    """

    def guard(start: Snapshot, now: Snapshot) -> str:
        found = now.find(resource, name, namespace)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return f"{resource} {name} is gone"
        before = start.find(resource, name, namespace) or {}
        for path in _differing(before.get("spec"), found.get("spec")):
            if not any(_is_within(path, each) for each in (*fields, _ANNOTATIONS)):
                return f"{resource} {name}: spec.{path} has changed"
        return ""

    return guard


def same(resource: str, name: str, *, namespace: str | None = "default") -> Guard:
    """It is the very object that was there at the start, not one like it."""

    def guard(start: Snapshot, now: Snapshot) -> str:
        before, found = start.find(resource, name, namespace), now.find(resource, name, namespace)
        if before is None:
            return ""
        if found is None or "deletionTimestamp" in found["metadata"]:
            return f"{resource} {name} is gone"
        if before["metadata"]["uid"] != found["metadata"]["uid"]:
            return f"{resource} {name} was made anew"
        return ""

    return guard


def untouched(*resources: str, but: Sequence[str] = ()) -> Guard:
    """No object of these resources has come, gone or changed, except those called so."""

    def guard(start: Snapshot, now: Snapshot) -> str:
        for resource in resources:
            before, after = _contents(start, resource, but), _contents(now, resource, but)
            for key in sorted(before.keys() | after.keys()):
                if before.get(key) != after.get(key):
                    return f"{resource} {key[1]} has come, gone or changed"
        return ""

    return guard


def same_nodes(start: Snapshot, now: Snapshot) -> str:
    """No node has come or gone, and none has more or less than it had."""
    if _capacities(start) != _capacities(now):
        return "nodes have come, gone or changed what they have"
    return ""


same_admission: Guard = untouched(
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
)
"""Nothing changes or refuses what is written that did not at the start."""

same_types: Guard = untouched("customresourcedefinitions", "apiservices")
"""There are no resources that are called like others, and say what their author likes."""


def pods_as_described(start: Snapshot, now: Snapshot) -> str:
    """Pods of ReplicaSets run what was described, whoever had a hand in it meanwhile."""
    described = {
        each["metadata"]["uid"]: each["spec"]["template"]["spec"]["containers"]
        for each in now.items("replicasets")
    }
    for pod in now.items("pods"):
        for owner in pod["metadata"].get("ownerReferences") or ():
            if not _described(described.get(owner["uid"], ()), pod["spec"]["containers"]):
                return f"pods {pod['metadata']['name']} is not as {owner['name']} describes it"
    return ""


STANDARD: Sequence[Guard] = (same_nodes, same_admission, same_types, pods_as_described)
"""What no task is about."""


def _differing(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The paths of what is not equal, as deep as both sides have something."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            below = f"{path}.{key}" if path else str(key)
            yield from _differing(before.get(key), after.get(key), below)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differing(one, other, f"{path}.{index}")
    elif before != after:
        yield path


def _is_within(path: str, field: str) -> bool:
    return path == field or path.startswith(f"{field}.")


def _described(wanted: Sequence[Object], found: Sequence[Object]) -> bool:
    by_name = {each["name"]: each for each in found}
    return all(
        _includes(by_name.get(each["name"], {}).get(key), each.get(key))
        for each in wanted
        for key in _RUNS
    )


def _includes(found: Any, wanted: Any) -> bool:
    """Whether all that is wanted is found: LimitRanges, say, add to it."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            _includes(found.get(key), value) for key, value in wanted.items()
        )
    return wanted is None or bool(found == wanted)


def _contents(
    snapshot: Snapshot, resource: str, but: Sequence[str]
) -> dict[tuple[str, str], Object]:
    """Everything that somebody wrote: neither metadata of the server nor status."""
    return {
        (item["metadata"].get("namespace", ""), item["metadata"]["name"]): {
            key: value for key, value in item.items() if key not in ("metadata", "status")
        }
        for item in snapshot.items(resource)
        if item["metadata"]["name"] not in but
    }


def _capacities(snapshot: Snapshot) -> dict[str, Any]:
    return {
        node["metadata"]["name"]: [
            (node.get("status") or {}).get(key) for key in ("capacity", "allocatable")
        ]
        for node in snapshot.items("nodes")
    }
