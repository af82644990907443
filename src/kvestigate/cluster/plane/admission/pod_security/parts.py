"""What the checks of Pod Security read, and how they word what they find. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kvestigate.cluster.plane.model.kind import Object


class Violation(NamedTuple):
    """Why a pod does not fit a level."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


@dataclass(frozen=True, slots=True)
class PodView:
    """The parts of a pod, or of a pod template, that are checked."""

    annotations: dict[str, str]
    spec: Object
    containers: list[Object]
    """Init containers first, ephemeral ones last."""

    @classmethod
    def of(cls, obj: Object) -> PodView:
        spec = obj.get("spec") or {}
        containers = [
            container
            for field in ("initContainers", "containers", "ephemeralContainers")
            for container in spec.get(field) or ()
        ]
        return cls((obj.get("metadata") or {}).get("annotations") or {}, spec, containers)

    @property
    def security(self) -> Object:
        return self.spec.get("securityContext") or {}

    @property
    def is_windows(self) -> bool:
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def has_own_users(self) -> bool:
        """Whether root of the pod is not root of the node."""
        return self.spec.get("hostUsers") is False

    def names(self, bad: Callable[[Object], bool]) -> list[str]:
        """The names of the containers that are bad."""
        return [container["name"] for container in self.containers if bad(container)]

    def settings(self, field: str) -> Iterator[tuple[str, Any]]:
        """(setter, value) of a field of the security contexts; the pod's setter is empty."""
        if (value := self.security.get(field)) is not None:
            yield "", value
        for container in self.containers:
            if (value := security(container).get(field)) is not None:
                yield container["name"], value


def security(container: Object) -> Object:
    context: Object = container.get("securityContext") or {}
    return context


def quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def containers(names: list[str]) -> str:
    """`container "a"` or `containers "a", "b"`"""
    return f"{plural('container', names)} {quoted(names)}"


def plural(noun: str, counted: Iterable[str]) -> str:
    return noun if len(list(counted)) == 1 else f"{noun}s"


def setters(names: Iterable[str]) -> str:
    """`pod and container "a"`: the pod is the one without a name."""
    every = list(names)
    named = [name for name in every if name]
    parts = ["pod"] if "" in every else []
    return " and ".join([*parts, containers(named)] if named else parts)
