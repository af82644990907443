"""PURE. Bytes of an object to its metadata and pod templates, whatever kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate.collect.kinds import Shape, WorkloadKind
from kvestigate.collect.views import CronJob, Identified, Meta, Pod, PodTemplate, Templated
from kvestigate.errors import InputError
from kvestigate.kube.decode import decode


@dataclass(frozen=True, slots=True)
class Workload:
    """One object, reduced to what is normalised."""

    kind: WorkloadKind
    metadata: Meta
    templates: tuple[PodTemplate, ...]
    """One, or as many as a path leads to."""
    parallelism: int | None = None
    completions: int | None = None


def read(kind: WorkloadKind, data: bytes) -> Workload:
    """The workload in a JSON object. InputError if it is none."""
    match kind.shape:
        case Shape.POD:
            pod = decode(data, Pod, where=kind.name)
            return Workload(kind, pod.metadata, (PodTemplate(pod.metadata, pod.spec),))
        case Shape.TEMPLATE:
            whole = decode(data, Templated, where=kind.name)
            spec = whole.spec
        case Shape.CRON:
            cron = decode(data, CronJob, where=kind.name)
            return Workload(
                kind,
                cron.metadata,
                (cron.spec.job_template.spec.template,),
                cron.spec.job_template.spec.parallelism,
                cron.spec.job_template.spec.completions,
            )
        case Shape.PATH:
            return Workload(
                kind, decode(data, Identified, where=kind.name).metadata, _by_path(kind, data)
            )
    return Workload(kind, whole.metadata, (spec.template,), spec.parallelism, spec.completions)


def _by_path(kind: WorkloadKind, data: bytes) -> tuple[PodTemplate, ...]:
    found = list(_walk(msgspec.json.decode(data), kind.path))
    if not found:
        raise InputError(f"there is no pod template at .{'.'.join(kind.path)}", where=kind.name)
    return tuple(
        decode(msgspec.json.encode(with_text_quantities(it)), PodTemplate, where=kind.name)
        for it in found
    )


def _walk(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    if not path:
        if isinstance(value, dict):
            yield value
        return
    key, rest = path[0], path[1:]
    if key == "*":
        values = value.values() if isinstance(value, dict) else value
        for inner in values if isinstance(value, dict | list) else ():
            yield from _walk(inner, rest)
    elif isinstance(value, dict) and key in value:
        yield from _walk(value[key], rest)


_AMOUNTS = frozenset(("requests", "limits", "overhead"))


def with_text_quantities(value: Any) -> Any:
    """A copy with numbers among the amounts as text: people write `cpu: 1`, servers `"1"`."""
    if isinstance(value, list):
        return [with_text_quantities(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _as_text(inner)
        if key in _AMOUNTS and isinstance(inner, dict)
        else with_text_quantities(inner)
        for key, inner in value.items()
    }


def _as_text(amounts: dict[str, Any]) -> dict[str, Any]:
    return {
        name: str(amount)
        if isinstance(amount, int | float) and not isinstance(amount, bool)
        else amount
        for name, amount in amounts.items()
    }
