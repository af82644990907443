"""The demand of a workload's manifest. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate.errors import InputError
from kvestigate.kube.requests import (
    Amounts,
    requests_of,
    with_default_requests,
    with_text_quantities,
)
from kvestigate.kube.views.meta import Metadata
from kvestigate.kube.views.pods import PodSpec, PodTemplate
from kvestigate.kube.yaml_documents import Document, flattened, load
from kvestigate.render.human import counted

_COUNTS = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
    "Pod": "",
}
"""Kind -> the field with the number of pods that run at the same time."""


@dataclass(frozen=True, slots=True)
class Workload:
    replicas: int
    need: Amounts
    spec: PodSpec
    labels: dict[str, str]
    namespace: str
    """Empty if the manifest has none."""


def read(text: str | bytes, source: str) -> Workload:
    """The only workload of a manifest; objects of other kinds are ignored."""
    workloads = [
        document
        for document in flattened(load(text, source))
        if isinstance(document.value, dict) and document.value.get("kind") in _COUNTS
    ]
    if len(workloads) != 1:
        raise InputError(
            f"has {counted(len(workloads), 'workload')}; a plan needs exactly 1",
            where=source,
            hint=f"give a file with one {', '.join(_COUNTS)}",
        )
    return _workload(workloads[0])


def _workload(document: Document) -> Workload:
    value = with_text_quantities(document.value)
    count = _COUNTS[value["kind"]]
    spec = value.get("spec")
    template = value if not count else spec.get("template") if isinstance(spec, dict) else None
    try:
        whole = msgspec.convert(template, PodTemplate)
        replicas = msgspec.convert(1 if not count else _given(spec, count), int)
        metadata = msgspec.convert(value.get("metadata") or {}, Metadata)
    except msgspec.ValidationError as error:
        raise InputError(str(error), where=document.where) from error
    pod = with_default_requests(whole.spec)
    return Workload(
        replicas=replicas,
        need=requests_of(pod),
        spec=pod,
        labels=whole.metadata.labels,
        namespace=metadata.namespace,
    )


def _given(spec: dict[str, Any], count: str) -> Any:
    value = spec.get(count)
    return 1 if value is None else value
