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

_COUNTS = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
    "Pod": "",
}
"""Kind -> the field that says how many pods there are at a time."""


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
    """Empty where the manifest does not say."""


def read(text: str | bytes, source: str) -> Workload:
    """The one workload of a manifest; other kinds of objects are passed over."""
    found = [
        document
        for document in flattened(load(text, source))
        if isinstance(document.value, dict) and document.value.get("kind") in _COUNTS
    ]
    if len(found) != 1:
        raise InputError(
            f"holds {len(found)} workloads, and a plan is made for one",
            where=source,
            hint=f"give a file with one of: {', '.join(_COUNTS)}",
        )
    return _workload(found[0])


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
    """As the server completes it: a limit without a request is one, and quantities are text."""
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return template
    spec = dict(template["spec"])
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            spec[field] = [_container(each) for each in spec[field]]
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
