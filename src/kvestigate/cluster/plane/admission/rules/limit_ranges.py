"""LimitRanges: what pods, containers and claims of a namespace get, and may ask for."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.admission.rules.amounts import Amounts, amounts, of_pod
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube.quantities import parse

LIMIT_RANGES = ("", "limitranges")
_ANNOTATION = "kubernetes.io/limit-ranger"


def _limits(write: Write) -> list[list[Object]]:
    """The limits of each range of the namespace."""
    ranges = write.scene.state.collection(LIMIT_RANGES)
    if not ranges:
        return []
    return [
        objects.read(item)["spec"].get("limits") or []
        for item in ranges.items(write.info.namespace)
    ]


def fill_in_limits(write: Write) -> None:
    if write.creates:
        for limits in _limits(write):
            _fill_in(write.new, limits)


def limit_pod(write: Write) -> None:
    if write.creates or write.info.subresource == "resize":
        for limits in _limits(write):
            _refuse(write, list(_pod_problems(write.new["spec"], limits)))


def limit_claim(write: Write) -> None:
    if write.operation == "DELETE" or write.info.subresource:
        return
    requests = amounts(write.new["spec"].get("resources"), "requests")
    for limits in _limits(write):
        complaints: list[str] = []
        for limit in limits:
            if limit["type"] == "PersistentVolumeClaim":
                wanted = _Amounts("PersistentVolumeClaim", requests, {})
                complaints += wanted.too_little(limit.get("min") or {})
                complaints += wanted.too_much(limit.get("max") or {}, requests_only=True)
        _refuse(write, complaints)


def _refuse(write: Write, complaints: list[str]) -> None:
    distinct = list(dict.fromkeys(complaints))
    if distinct:
        raise write.forbidden(distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]")


def _fill_in(pod: Object, limits: list[Object]) -> None:
    """Requests and limits for containers that have none, noted in an annotation."""
    defaults: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for limit in limits:
        if limit["type"] == "Container":
            defaults["requests"] |= limit.get("defaultRequest") or {}
            defaults["limits"] |= limit.get("default") or {}
    notes: list[str] = []
    for field, called in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or ():
            notes += _complete(container, defaults, f"{called} {container.get('name', '')}")
    if notes:
        annotations = pod["metadata"].get("annotations") or {}
        text = f"LimitRanger plugin set: {'; '.join(notes)}"
        pod["metadata"]["annotations"] = {**annotations, _ANNOTATION: text}


def _complete(container: Object, defaults: dict[str, dict[str, str]], called: str) -> Iterator[str]:
    resources = container.setdefault("resources", {})
    for kind, word in (("requests", "request"), ("limits", "limit")):
        present = resources.get(kind) or {}
        missing = {name: text for name, text in defaults[kind].items() if name not in present}
        if missing:
            resources[kind] = {**present, **missing}
            yield f"{', '.join(sorted(missing))} {word} for {called}"


def _pod_problems(spec: Object, limits: list[Object]) -> Iterator[str]:
    for limit in limits:
        if limit["type"] == "Container":
            for field in ("containers", "initContainers"):
                for container in spec.get(field) or ():
                    own = container.get("resources")
                    wanted = _Amounts("Container", amounts(own, "requests"), amounts(own, "limits"))
                    yield from wanted.problems(limit)
        elif limit["type"] == "Pod":
            total = _Amounts("Pod", of_pod(spec, "requests"), of_pod(spec, "limits"))
            yield from total.problems(limit)


class _Amounts:
    """What one pod, container or claim asks for, beside what a limit allows."""

    def __init__(self, type_: str, requests: Amounts, limits: Amounts) -> None:
        self._type = type_
        self._requests = requests
        self._limits = limits

    def problems(self, limit: Object) -> Iterator[str]:
        yield from self.too_little(limit.get("min") or {})
        yield from self.too_much(limit.get("max") or {})
        yield from self._too_wide(limit.get("maxLimitRequestRatio") or {})

    def too_little(self, bounds: dict[str, str]) -> Iterator[str]:
        for name, text in sorted(bounds.items()):
            rule = f"minimum {name} usage per {self._type} is {text}"
            request, limit = self._requests.get(name), self._limits.get(name)
            if request is None:
                yield f"{rule}.  No request is specified"
            elif request < parse(text):
                yield f"{rule}, but request is {request}"
            elif limit is not None and limit < parse(text):
                yield f"{rule}, but limit is {limit}"

    def too_much(self, bounds: dict[str, str], *, requests_only: bool = False) -> Iterator[str]:
        for name, text in sorted(bounds.items()):
            rule = f"maximum {name} usage per {self._type} is {text}"
            request, limit = self._requests.get(name), self._limits.get(name)
            decisive, word = (request, "request") if requests_only else (limit, "limit")
            if decisive is None:
                yield f"{rule}.  No {word} is specified"
            elif decisive > parse(text):
                yield f"{rule}, but {word} is {decisive}"
            elif request is not None and request > parse(text):
                yield f"{rule}, but request is {request}"

    def _too_wide(self, bounds: dict[str, str]) -> Iterator[str]:
        for name, text in sorted(bounds.items()):
            rule = f"{name} max limit to request ratio per {self._type} is {text}"
            request, limit = self._requests.get(name), self._limits.get(name)
            if not request:
                yield f"{rule}, but no request is specified or request is 0"
            elif not limit:
                yield f"{rule}, but no limit is specified or limit is 0"
            elif limit.nanos / request.nanos > float(parse(text)):
                yield f"{rule}, but provided ratio is {limit.nanos / request.nanos:f}"
