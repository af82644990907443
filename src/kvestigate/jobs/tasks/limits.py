"""How long each phase of a task may take, and in which queue it waits. Pure.

SkyPilot's `config.kubernetes` has fields for the queue and for the time to start; what it has no
field for is under `config.kvestigate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.strict import known_fields, mapping
from kvestigate.kube.names import subdomain_problems

_DAY = 24 * 3600
_LONGEST = 2**31 - 1
_DURATION = re.compile(r"(\d{1,9})([smhdw]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": _DAY, "w": 7 * _DAY}


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


GATHER_SECONDS = 300
"""How long the nodes that run wait for those that do not."""


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


def read_limits(value: Any) -> tuple[Limits, list[str]]:
    """The limits of a task's `config`, and the paths of what means nothing here."""
    config = mapping(value, "config")
    kubernetes = mapping(config.get("kubernetes"), "config.kubernetes")
    own = mapping(config.get("kvestigate"), "config.kvestigate")
    known_fields(own, {"deadline", "ttl"}, "config.kvestigate.")
    kueue = mapping(kubernetes.get("kueue"), "config.kubernetes.kueue")
    known_fields(kueue, {"local_queue_name"}, "config.kubernetes.kueue.")
    given: dict[str, int] = {}
    for name, fields, key in (
        ("start_seconds", kubernetes, "provision_timeout"),
        ("deadline_seconds", own, "deadline"),
        ("ttl_seconds", own, "ttl"),
    ):
        if fields.get(key) is not None:
            parent = "kubernetes" if fields is kubernetes else "kvestigate"
            given[name] = _seconds(fields[key], f"config.{parent}.{key}")
    ignored = [f"config.{key}" for key in config if key not in ("kubernetes", "kvestigate")]
    ignored += [
        f"config.kubernetes.{key}"
        for key in kubernetes
        if key not in ("kueue", "provision_timeout")
    ]
    return Limits(queue=_queue(kueue.get("local_queue_name")), **given), ignored


def _queue(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or subdomain_problems(value):
        raise InputError(f"config.kubernetes.kueue.local_queue_name: {value!r} is no name")
    return value


def _seconds(value: Any, path: str) -> int:
    found = None
    if isinstance(value, int) and not isinstance(value, bool):
        found = _LONGEST if value == -1 else value  # -1 is SkyPilot's "wait as long as it takes"
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        found = int(match[1]) * _UNITS[match[2]]
    if found is None or not 1 <= found <= _LONGEST:
        raise InputError(f"{path}: {value!r} is no time", hint="write seconds, 30m, 12h or 7d")
    return found
