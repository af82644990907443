"""The demand of a workload's manifest. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate.errors import InputError
from kvestigate.kube.requests import Amounts, requests_of
from kvestigate.kube.views.meta import View
from kvestigate.kube.views.pods import PodSpec
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


class _Meta(View, frozen=True):
    namespace: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Template(View, frozen=True):
    metadata: _Meta = _Meta()
    spec: PodSpec = PodSpec()


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
    value = document.value
    count = _COUNTS[value["kind"]]
    spec = value.get("spec")
    template = value if not count else spec.get("template") if isinstance(spec, dict) else None
    try:
        whole = msgspec.convert(_with_requests(template), _Template)
        replicas = msgspec.convert(1 if not count else _given(spec, count), int)
        namespace = msgspec.convert(value.get("metadata") or {}, _Meta).namespace
    except msgspec.ValidationError as error:
        raise InputError(str(error), where=document.where) from error
    return Workload(
        replicas=replicas,
        need=requests_of(whole.spec),
        spec=whole.spec,
        labels=whole.metadata.labels,
        namespace=namespace,
    )


def _given(spec: dict[str, Any], count: str) -> Any:
    value = spec.get(count)
    return 1 if value is None else value


def _with_requests(template: Any) -> Any:
    """With the API server's defaults: a limit without a request is the request, too."""
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return template
    spec = dict(template["spec"])
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            spec[field] = [_container(container) for container in spec[field]]
    return {**template, "spec": spec}


def _container(container: Any) -> Any:
    if not isinstance(container, dict) or not isinstance(container.get("resources"), dict):
        return container
    resources = dict(container["resources"])
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if isinstance(limits, dict) and isinstance(requests, dict):
        resources["limits"] = _as_text(limits)
        resources["requests"] = _as_text({**limits, **requests})
    return {**container, "resources": resources}


def _as_text(quantities: dict[str, Any]) -> dict[str, Any]:
    return {
        name: str(amount) if isinstance(amount, int | float) else amount
        for name, amount in quantities.items()
    }
