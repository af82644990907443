"""What an autoscaler's metrics say of its pods: the size each asks for, or why it is unknown. Pure.

Pods that do not answer count as idle on the way up and as full on the way down, so that silence
alone never moves the size. Amounts are thousandths, as the API gives averages no finer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.objects import (
    Behavior,
    ContainerMetricStatus,
    Metric,
    MetricStatus,
    MetricTarget,
    MetricValue,
    ResourceMetric,
    ResourceMetricStatus,
    ScalingRules,
)
from kvestigate.cluster.controllers.pods import is_leaving
from kvestigate.cluster.controllers.times import seconds
from kvestigate.kube.quantities import Notation, Quantity, parse
from kvestigate.kube.requests import CPU, MEMORY, requests_of
from kvestigate.kube.views.pods import Container, Pod

INITIALISING, SETTLING = 300.0, 30.0
"""Seconds from the start of a pod: the time it may take to become ready, and the time within which
a pod that turned unready counts as never having been ready."""
_MILLI = 1_000_000
"""Nanos in a thousandth."""

Usage = Mapping[str, Mapping[str, Mapping[str, Quantity]]]
"""Pod name -> container -> resource -> what it uses now."""
Amounts = dict[str, int]
"""Pod name -> thousandths."""

NONE_TOLD = "no metrics returned from resource metrics API"
DEFAULT = Metric("Resource", ResourceMetric("cpu", MetricTarget("Utilization", 80)))


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Ratios this close to 1 are left alone: chasing noise costs more than it gains."""

    down: float = 0.1
    up: float = 0.1

    @classmethod
    def of(cls, behavior: Behavior | None) -> Tolerance:
        if behavior is None:
            return USUAL
        return cls(_stated(behavior.scale_down, USUAL.down), _stated(behavior.scale_up, USUAL.up))

    def covers(self, ratio: float) -> bool:
        return 1 - self.down <= ratio <= 1 + self.up


USUAL = Tolerance()


def _stated(rules: ScalingRules | None, usual: float) -> float:
    if rules is None or rules.tolerance is None:
        return usual
    return parse(rules.tolerance).nanos / 1e9


@dataclass(frozen=True, slots=True)
class Seen:
    """The pods of an autoscaler and what they use."""

    now: float
    current: int
    """How many there should be."""
    pods: Sequence[Pod]
    usage: Usage
    silence: str = NONE_TOLD
    """Why the usage of no pod is known, if it is not."""


class Unread(Exception):
    """A metric that cannot be known now; the message says why."""

    def __init__(self, reason: str, attempt: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason
        """`FailedGetResourceMetric`"""
        self.attempt = attempt
        """`failed to get cpu resource metric value`"""


@dataclass(frozen=True, slots=True)
class Proposal:
    replicas: int | None
    """None: too little is known to move."""
    because: str
    """The metric that asks for that size."""
    metrics: tuple[MetricStatus, ...]
    """One for each metric of the spec, in the same order."""
    unread: tuple[Unread, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """A resource metric, of whole pods or of one container."""

    resource: str
    container: str
    target: MetricTarget

    @property
    def name(self) -> str:
        part = "container resource" if self.container else "resource"
        if self.target.average_value is not None:
            return f"{self.resource} resource"
        return f"{self.resource} {part} utilization (percentage of request)"

    def failure(self, why: str) -> Unread:
        kind = "ContainerResource" if self.container else "Resource"
        attempt = (
            f"failed to get {self.container} container metric value"
            if self.container
            else f"failed to get {self.resource} resource metric value"
        )
        word = "utilization" if self.target.average_value is None else "usage"
        message = f"failed to get {self.resource} {word}: {why}"
        return Unread(f"FailedGet{kind}Metric", attempt, message)


def propose(metrics: Sequence[Metric], seen: Seen, tolerance: Tolerance = USUAL) -> Proposal:
    """The largest size that any metric asks for.

    Not a smaller one while some metric is unknown: it might ask for more.
    """
    sizes: list[tuple[int, str]] = []
    shown: list[MetricStatus] = []
    unread: list[Unread] = []
    for metric in metrics:
        try:
            source = _source(metric)
            size, value = _by_metric(source, seen, tolerance)
        except Unread as failure:
            unread.append(failure)
            shown.append(MetricStatus(""))
        else:
            sizes.append((size, source.name))
            shown.append(_status(source, value))
    size, because = max(sizes, key=lambda proposal: proposal[0], default=(0, ""))
    known = bool(sizes) and not (unread and size < seen.current)
    return Proposal(size if known else None, because, tuple(shown), tuple(unread))


def _source(metric: Metric) -> _Source:
    if metric.resource is not None:
        return _Source(metric.resource.name, "", metric.resource.target)
    if metric.container_resource is not None:
        own = metric.container_resource
        return _Source(own.name, own.container, own.target)
    api = "external" if metric.type == "External" else "custom"
    raise Unread(
        f"FailedGet{metric.type}Metric",
        f"failed to get {metric.type.lower()} metric value",
        f"unable to fetch metrics from {api} metrics API: this cluster has none",
    )


def _status(source: _Source, value: MetricValue) -> MetricStatus:
    if source.container:
        own = ContainerMetricStatus(source.resource, source.container, value)
        return MetricStatus("ContainerResource", container_resource=own)
    return MetricStatus("Resource", ResourceMetricStatus(source.resource, value))


def _by_metric(source: _Source, seen: Seen, tolerance: Tolerance) -> tuple[int, MetricValue]:
    current, pods = seen.current, seen.pods
    used = _used(source, seen.usage)
    if not used:
        raise source.failure(
            f"unable to get metrics for resource {source.resource}: {seen.silence}"
        )
    if not pods:
        raise source.failure("no pods returned by selector while calculating replica count")
    counted, unready, missing = _sorted_out(source, seen, used)
    if not counted:
        raise source.failure("did not receive metrics for targeted pods (pods might be unready)")
    scale = _Scale(source, pods)
    ratio, percent = scale.ratio(counted)
    average = sum(counted.values()) // len(counted)
    value = MetricValue(percent, _shown(source.resource, average))
    up = unready if ratio > 1 else []
    if not up and not missing:
        return (current if tolerance.covers(ratio) else ceil(ratio * len(counted))), value
    everybody = counted | dict.fromkeys(up, 0) | scale.supposed(missing, ratio)
    again, _ = scale.ratio(everybody)
    if tolerance.covers(again) or (ratio < 1 < again) or (again < 1 < ratio):
        return current, value
    size = ceil(again * len(everybody))
    wrong_way = (again < 1 and size > current) or (again > 1 and size < current)
    return (current if wrong_way else size), value


def _used(source: _Source, usage: Usage) -> Amounts:
    """Usage by pod, of pods for which all containers that count have metrics."""
    used: Amounts = {}
    for pod, containers in usage.items():
        amounts = [
            resources.get(source.resource)
            for name, resources in containers.items()
            if source.container in ("", name)
        ]
        if amounts and None not in amounts:
            used[pod] = sum(amount.millis for amount in amounts if amount is not None)
    return used


def _sorted_out(source: _Source, seen: Seen, used: Amounts) -> tuple[Amounts, list[str], list[str]]:
    """Pods that count, pods that are not ready, and pods without metrics."""
    counted: Amounts = {}
    unready, missing = [], []
    for pod in seen.pods:
        name = pod.metadata.name
        if is_leaving(pod) or pod.status.phase == "Failed":
            continue
        if pod.status.phase == "Pending":
            unready.append(name)
        elif name not in used:
            missing.append(name)
        elif source.resource == "cpu" and _is_starting(pod, seen.now):
            unready.append(name)  # what starting up takes says nothing of the load
        else:
            counted[name] = used[name]
    return counted, unready, missing


def _is_starting(pod: Pod, now: float) -> bool:
    """Not ready, and not because of the load: one that was ready before still counts."""
    ready = conditions.find(pod.status.conditions, "Ready")
    if ready is None or pod.status.start_time is None:
        return True
    if ready.status != "False":
        return False
    started = seconds(pod.status.start_time)
    return now < started + INITIALISING or (
        seconds(ready.last_transition_time) < started + SETTLING
    )


class _Scale:
    """How usage compares to the target of a metric."""

    def __init__(self, source: _Source, pods: Sequence[Pod]) -> None:
        self._source = source
        self._percent = source.target.average_utilization
        self._amount = 0
        self._requests: Amounts = {}
        if source.target.average_value is not None:
            self._percent = None
            self._amount = max(1, parse(source.target.average_value).millis)
        elif self._percent is not None:
            self._requests = {pod.metadata.name: _request(source, pod) for pod in pods}
        else:
            raise source.failure("neither a utilization nor an average value is the target")

    def ratio(self, used: Amounts) -> tuple[float, int | None]:
        """And the utilization, where that is the target."""
        total = sum(used.values())
        if self._percent is None:
            return (total // len(used)) / self._amount, None
        requested = sum(self._requests[name] for name in used)
        if not requested:
            raise self._source.failure("no metrics returned matched known pods")
        percent = total * 100 // requested
        return percent / self._percent, percent

    def supposed(self, missing: Sequence[str], ratio: float) -> Amounts:
        """What those who do not answer may use; where nothing has to move, they do not count."""
        if ratio == 1:
            return {}
        if ratio > 1:
            return dict.fromkeys(missing, 0)
        if self._percent is None:
            return dict.fromkeys(missing, self._amount)
        full = max(100, self._percent)
        return {name: self._requests[name] * full // 100 for name in missing}


def _request(source: _Source, pod: Pod) -> int:
    if not source.container and _states_requests(pod):
        whole = requests_of(pod.spec).get(source.resource)
        if whole is None:
            why = f"missing pod-level request for {source.resource} in Pod {pod.metadata.name}"
            raise source.failure(why)
        return whole if source.resource == CPU else whole * 1000
    sidecars = [
        candidate for candidate in pod.spec.init_containers if candidate.restart_policy == "Always"
    ]
    wanted = [
        candidate
        for candidate in (*pod.spec.containers, *sidecars)
        if source.container in ("", candidate.name)
    ]
    if not wanted:
        raise source.failure(f"container {source.container} not found in Pod {pod.metadata.name}")
    return sum(_asked(source, pod, container) for container in wanted)


def _states_requests(pod: Pod) -> bool:
    """Whether a pod says what it asks for as a whole."""
    stated = pod.spec.resources.requests if pod.spec.resources is not None else {}
    return any(name in (CPU, MEMORY) or name.startswith("hugepages-") for name in stated)


def _asked(source: _Source, pod: Pod, container: Container) -> int:
    amount = container.resources.requests.get(source.resource)
    if amount is None:
        raise source.failure(
            f"missing request for {source.resource} in container {container.name} "
            f"of Pod {pod.metadata.name}"
        )
    return parse(amount).millis


def _shown(resource: str, millis: int) -> str:
    notation = Notation.BINARY if resource == "memory" else Notation.DECIMAL
    return str(Quantity(millis * _MILLI, notation))
