"""Bytes of an object to its metadata and pod templates, whatever kind it is. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate.collect.kinds import Shape, WorkloadKind
from kvestigate.errors import InputError
from kvestigate.kube.decode import decode
from kvestigate.kube.requests import with_text_quantities
from kvestigate.kube.views.meta import Metadata, PartialObject, View

_NOTHING = msgspec.Raw(b"{}")


class TemplatedSpec(View, frozen=True):
    template: msgspec.Raw = _NOTHING
    """A `PodTemplate`, unread: most events leave it as it was."""
    parallelism: int | None = None
    completions: int | None = None


class Templated(View, frozen=True):
    """Deployment, StatefulSet, DaemonSet, ReplicaSet, Job."""

    metadata: Metadata = Metadata()
    spec: TemplatedSpec = TemplatedSpec()


class JobTemplate(View, frozen=True):
    spec: TemplatedSpec = TemplatedSpec()


class CronSpec(View, frozen=True):
    job_template: JobTemplate = JobTemplate()


class CronJob(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: CronSpec = CronSpec()


class Pod(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: msgspec.Raw = _NOTHING
    """A `PodSpec`, unread."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One object, reduced to what is normalised."""

    kind: WorkloadKind
    metadata: Metadata
    templates: tuple[bytes, ...]
    """Pod templates as JSON: one, or as many as a path leads to."""
    parallelism: int | None = None
    completions: int | None = None


def view_of(kind: WorkloadKind) -> type[Any]:
    """What a workload of this kind is decoded into; bytes where only a walk finds its parts."""
    return _VIEWS[kind.shape]


def read(kind: WorkloadKind, data: bytes) -> Workload:
    """The workload in a JSON object. InputError if it is none."""
    view = view_of(kind)
    return workload(kind, data if view is bytes else decode(data, view, where=kind.name))


def workload(kind: WorkloadKind, view: Any) -> Workload:
    """From what `view_of` names. InputError if the path of the kind leads to no template."""
    match kind.shape:
        case Shape.TEMPLATE:
            return _templated(kind, view.metadata, view.spec)
        case Shape.POD:
            return Workload(kind, view.metadata, (_pod_template(view),))
        case Shape.CRON:
            return _templated(kind, view.metadata, view.spec.job_template.spec)
        case Shape.PATH:
            metadata = decode(view, PartialObject, where=kind.name).metadata
            return Workload(kind, metadata, _by_path(kind, view))


_VIEWS: Mapping[Shape, type[Any]] = {
    Shape.TEMPLATE: Templated,
    Shape.POD: Pod,
    Shape.CRON: CronJob,
    Shape.PATH: bytes,
}


def _templated(kind: WorkloadKind, metadata: Metadata, spec: TemplatedSpec) -> Workload:
    template = bytes(spec.template)
    return Workload(kind, metadata, (template,), spec.parallelism, spec.completions)


def _pod_template(pod: Pod) -> bytes:
    """The template that the pod may have come from."""
    annotations = msgspec.json.encode(pod.metadata.annotations)
    return b'{"metadata":{"annotations":%b},"spec":%b}' % (annotations, bytes(pod.spec))


def _by_path(kind: WorkloadKind, data: bytes) -> tuple[bytes, ...]:
    templates = list(_walk(msgspec.json.decode(data), kind.path))
    if not templates:
        raise InputError(f"no pod template at .{'.'.join(kind.path)}", where=kind.name)
    return tuple(msgspec.json.encode(with_text_quantities(template)) for template in templates)


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
