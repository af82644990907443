"""How long each phase of a task may take, and in which queue it waits. Pure.

SkyPilot's `config.kubernetes` has fields for the queue and for the time to start; what it has no
field for is under `config.kvestigate`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from kvestigate.errors import InputError
from kvestigate.kube.documents import ANYTHING, mapping
from kvestigate.kube.names import subdomain_problems

_DAY = 24 * 3600
_LONGEST = 2**31 - 1
_DURATION = re.compile(r"(\d{1,9})([smhdw]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": _DAY, "w": 7 * _DAY}


def _queue(value: Any, path: str) -> str:
    if not isinstance(value, str) or subdomain_problems(value):
        raise InputError(f"{value!r} is not the name of a LocalQueue", where=path)
    return value


def _seconds(value: Any, path: str) -> int:
    seconds = None
    if isinstance(value, int) and not isinstance(value, bool):
        seconds = _LONGEST if value == -1 else value  # -1 is SkyPilot's "wait without a limit"
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        seconds = int(match[1]) * _UNITS[match[2]]
    if seconds is None or not 1 <= seconds <= _LONGEST:
        raise InputError(
            f"{value!r} is not a duration", where=path, hint="write seconds, 30m, 12h or 7d"
        )
    return seconds


@dataclass(frozen=True, slots=True)
class Limits:
    start_seconds: int = _DAY
    """From the submission until all nodes run."""
    deadline_seconds: int = 30 * _DAY
    """From the submission until all is done."""
    ttl_seconds: int = 7 * _DAY
    """How long a finished task is kept, with its log; its history is kept for longer."""
    queue: str = ""
    """Kueue's LocalQueue that admits it."""


_DEFAULTS = Limits()

GATHER_SECONDS = 300
"""How long the nodes that run wait for those that do not."""


@dataclass(frozen=True, slots=True)
class _Kueue:
    local_queue_name: Annotated[str, _queue] = ""


@dataclass(frozen=True, slots=True)
class _Kubernetes:
    IGNORED: ClassVar[Container[str]] = ANYTHING
    provision_timeout: Annotated[int, _seconds] = _DEFAULTS.start_seconds
    kueue: _Kueue = field(default_factory=_Kueue)


@dataclass(frozen=True, slots=True)
class _Kvestigate:
    deadline: Annotated[int, _seconds] = _DEFAULTS.deadline_seconds
    ttl: Annotated[int, _seconds] = _DEFAULTS.ttl_seconds


@dataclass(frozen=True, slots=True)
class Config:
    """The field `config` of a task file."""

    IGNORED: ClassVar[Container[str]] = ANYTHING
    kubernetes: _Kubernetes = field(default_factory=_Kubernetes)
    kvestigate: _Kvestigate = field(default_factory=_Kvestigate)

    @property
    def limits(self) -> Limits:
        own, kubernetes = self.kvestigate, self.kubernetes
        queue = kubernetes.kueue.local_queue_name
        return Limits(kubernetes.provision_timeout, own.deadline, own.ttl, queue)


def ignored_config(document: Mapping[str, Any]) -> list[str]:
    """The paths below the `config` of a task file that mean nothing here."""
    config = mapping(document.get("config"), "config")
    kubernetes = mapping(config.get("kubernetes"), "config.kubernetes")
    return [
        *(
            f"config.{key}"
            for key, value in config.items()
            if key not in ("kubernetes", "kvestigate") and value is not None
        ),
        *(
            f"config.kubernetes.{key}"
            for key, value in kubernetes.items()
            if key not in ("kueue", "provision_timeout") and value is not None
        ),
    ]


def with_limits(
    document: Mapping[str, Any],
    *,
    queue: str | None = None,
    start: float | None = None,
    deadline: float | None = None,
    ttl: float | None = None,
) -> dict[str, Any]:
    """The document with limits from elsewhere on top of its own."""
    config = dict(mapping(document.get("config"), "config"))
    kubernetes = dict(mapping(config.get("kubernetes"), "config.kubernetes"))
    own = dict(mapping(config.get("kvestigate"), "config.kvestigate"))
    if queue is not None:
        kubernetes["kueue"] = {"local_queue_name": queue}
    if start is not None:
        kubernetes["provision_timeout"] = int(start)
    for key, value in (("deadline", deadline), ("ttl", ttl)):
        if value is not None:
            own[key] = int(value)
    changed = dict(document)
    named = {"kubernetes": kubernetes, "kvestigate": own}
    if config := config | {key: value for key, value in named.items() if value}:
        changed["config"] = config
    return changed
