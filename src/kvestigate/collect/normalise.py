"""A workload to the record that the stream is made of. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from kvestigate.collect import devices, sidecars
from kvestigate.collect.placement import node_type
from kvestigate.collect.reading import Workload
from kvestigate.collect.record import ContainerRecord, DeviceRecord, EventType, Record
from kvestigate.collect.sidecars import KNOWN, Sidecars
from kvestigate.kube import quantities
from kvestigate.kube.decode import decode
from kvestigate.kube.requests import (
    CPU,
    MEMORY,
    Amounts,
    requests_of,
    with_default_requests,
)
from kvestigate.kube.views.meta import View
from kvestigate.kube.views.pods import Container, PodTemplate

# kubectl's copy of the manifest: as large as the object, and it may hold what env holds.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_MIB = 1024 * 1024
_TEMPLATES = 1024
"""Templates remembered: a few MB."""


class _VolumesSpec(View, frozen=True):
    volumes: tuple[dict[str, msgspec.Raw], ...] = ()


class _Volumes(View, frozen=True):
    """A pod template, seen by the types of its volumes: a volume is a name and a source."""

    spec: _VolumesSpec = _VolumesSpec()


class TemplateFacts(msgspec.Struct, frozen=True):
    """What a record says of the pods that a workload makes."""

    containers: tuple[ContainerRecord, ...]
    init_container_count: int
    sidecar_count: int
    volume_types: tuple[str, ...]
    node_type: str | None
    runtime_class: str | None
    gpu_count: int
    cpu: int
    memory: int
    gpus: dict[str, int]
    gpu_fraction: float | None
    devices: tuple[DeviceRecord, ...]


def normalise(
    workload: Workload, event: EventType | None = None, known: Sidecars = KNOWN
) -> Record:
    """The record of one state. Quantities that do not parse are an InputError."""
    facts = template_facts(workload.kind.name, workload.templates, known)
    meta = workload.metadata
    annotations = meta.annotations
    if LAST_APPLIED in annotations:
        annotations = {key: text for key, text in annotations.items() if key != LAST_APPLIED}
    return Record(
        namespace=meta.namespace or "default",
        workload_kind=workload.kind.name,
        workload_name=meta.name or meta.generate_name,
        labels=meta.labels,
        annotations=annotations,
        containers=facts.containers,
        init_container_count=facts.init_container_count,
        sidecar_count=facts.sidecar_count,
        volume_types=facts.volume_types,
        node_type=facts.node_type,
        runtime_class=facts.runtime_class,
        gpu_count=facts.gpu_count,
        parallelism=workload.parallelism,
        completions=workload.completions,
        id=identity(meta.uid, meta.resource_version),
        event=event,
        effective_cpu_mcpu=facts.cpu,
        effective_mem_mib=facts.memory,
        gpu_resources=facts.gpus,
        gpu_fraction=facts.gpu_fraction,
        devices=facts.devices,
    )


# A workload changes its status and its scale far more often than its template.
@lru_cache(maxsize=_TEMPLATES)
def template_facts(kind: str, written: tuple[bytes, ...], known: Sidecars) -> TemplateFacts:
    """Of pod templates as JSON, all of one workload."""
    templates = [decode(template, PodTemplate, where=kind) for template in written]
    specs = [template.spec for template in templates]
    total = _sum(requests_of(with_default_requests(spec)) for spec in specs)
    gpus = devices.gpu_amounts(total)
    fraction = _fraction(templates)
    return TemplateFacts(
        containers=tuple(_container(container) for spec in specs for container in spec.containers),
        init_container_count=sum(
            not sidecars.is_native(container)
            for spec in specs
            for container in spec.init_containers
        ),
        sidecar_count=sum(known.count(spec) for spec in specs),
        volume_types=_volume_types(kind, written),
        node_type=next((label for spec in specs if (label := node_type(spec))), None),
        runtime_class=next(
            (spec.runtime_class_name for spec in specs if spec.runtime_class_name), None
        ),
        gpu_count=devices.count(gpus, fraction),
        cpu=total.get(CPU, 0),
        memory=_mib(total.get(MEMORY, 0)),
        gpus=gpus,
        gpu_fraction=fraction,
        devices=tuple(
            devices.devices(gpus, (claim for spec in specs for claim in spec.resource_claims))
        ),
    )


def identity(uid: str, resource_version: str) -> str | None:
    """The id of an event; None for what never was on a server."""
    return f"{uid}@{resource_version}" if uid else None


def _container(container: Container) -> ContainerRecord:
    requests, limits = container.resources.requests, container.resources.limits
    return ContainerRecord(
        name=container.name,
        image=container.image,
        command=container.command or None,
        args=container.args or None,
        req_cpu_mcpu=_millis(requests),
        req_mem_mib=_memory(requests),
        lim_cpu_mcpu=_millis(limits),
        lim_mem_mib=_memory(limits),
    )


def _millis(written: Mapping[str, str]) -> int | None:
    text = written.get(CPU)
    return None if text is None else quantities.millis(text)


def _memory(written: Mapping[str, str]) -> int | None:
    text = written.get(MEMORY)
    return None if text is None else _mib(quantities.whole(text))


def _mib(amount: int) -> int:
    return -(-amount // _MIB)


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for resources in amounts:
        for name, amount in resources.items():
            total[name] = total.get(name, 0) + amount
    return total


def _fraction(templates: Iterable[PodTemplate]) -> float | None:
    fractions = (devices.fraction_of(template.metadata.annotations) for template in templates)
    return next((fraction for fraction in fractions if fraction is not None), None)


def _volume_types(kind: str, written: Iterable[bytes]) -> tuple[str, ...]:
    templates = [decode(template, _Volumes, where=kind) for template in written]
    volumes = [volume for template in templates for volume in template.spec.volumes]
    return tuple(sorted({key for volume in volumes for key in volume if key != "name"}))
