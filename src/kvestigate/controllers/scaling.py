"""How large a workload should be for what it uses. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from kvestigate.controllers.podrequests import requests
from kvestigate.controllers.pods import is_active, is_ready
from kvestigate.controllers.views import (
    HorizontalPodAutoscaler,
    MetricStatus,
    MetricValue,
    ResourceMetric,
    ResourceMetricStatus,
    ScalingPolicy,
    ScalingRules,
)
from kvestigate.kube.quantities import ZERO, Quantity, parse
from kvestigate.kube.views.pods import Pod

TOLERANCE = 0.1
"""A ratio this close to 1 is left alone: chasing noise costs more than it gains."""
DOWN_WINDOW = 300

_UP = ScalingRules(
    stabilization_window_seconds=0,
    policies=(ScalingPolicy("Percent", 100, 15), ScalingPolicy("Pods", 4, 15)),
)
_DOWN = ScalingRules(
    stabilization_window_seconds=DOWN_WINDOW, policies=(ScalingPolicy("Percent", 100, 15),)
)

Usage = Mapping[str, Mapping[str, Quantity]]
"""Pod name -> resource -> what it uses now."""


@dataclass(slots=True)
class Past:
    """What an autoscaler remembers between two looks."""

    wished: list[tuple[float, int]] = field(default_factory=list)
    """Recommendations, with their times."""
    steps: list[tuple[float, int]] = field(default_factory=list)
    """Changes that were made: positive up, negative down."""


@dataclass(frozen=True, slots=True)
class Proposal:
    replicas: int
    metrics: tuple[MetricStatus, ...]


def propose(
    metrics: Sequence[ResourceMetric], current: int, pods: Sequence[Pod], usage: Usage
) -> Proposal | None:
    """The largest size that any metric asks for; None when none can be read."""
    sizes, shown = [], []
    for metric in metrics:
        found = _by_metric(metric, current, pods, usage)
        if found is not None:
            size, value = found
            sizes.append(size)
            status = ResourceMetricStatus(metric.name, value)
            shown.append(MetricStatus("Resource", status))
    return Proposal(max(sizes), tuple(shown)) if sizes else None


def _by_metric(
    metric: ResourceMetric, current: int, pods: Sequence[Pod], usage: Usage
) -> tuple[int, MetricValue] | None:
    living = [pod for pod in pods if is_active(pod)]
    known = [pod for pod in living if metric.name in usage.get(pod.metadata.name, {})]
    ready = [pod for pod in known if is_ready(pod)]
    if not ready:
        return None
    used = sum(usage[pod.metadata.name][metric.name].nanos for pod in ready)
    target = metric.target
    average = Quantity(used // len(ready))
    if target.average_utilization is not None:
        asked = sum(requests(pod).get(metric.name, ZERO).nanos for pod in ready)
        if not asked:
            return None
        percent = used * 100 // asked
        ratio = percent / target.average_utilization
        value = MetricValue(int(percent), _shown(metric.name, average))
    elif target.average_value is not None:
        ratio = average.nanos / max(1, parse(target.average_value).nanos)
        value = MetricValue(None, _shown(metric.name, average))
    else:
        return None
    if abs(ratio - 1) <= TOLERANCE:
        return current, value
    # Pods that do not answer count as idle on the way up and as full on the way down, so that
    # silence alone never moves the size.
    silent = len(living) - len(ready)
    total = ratio * len(ready) + (silent if ratio < 1 else 0)
    size = ceil(total - 1e-9)
    if silent and (size < current) != (ratio < 1):
        return current, value
    return size, value


def _shown(name: str, amount: Quantity) -> str:
    return f"{amount.millis}m" if name == "cpu" else str(amount.whole)


def limited(
    scaler: HorizontalPodAutoscaler, current: int, wished: int, past: Past, now: float
) -> tuple[int, str]:
    """The size within windows, policies and bounds; and which of them held it back."""
    spec = scaler.spec
    up = spec.behavior.scale_up or _UP
    down = spec.behavior.scale_down or _DOWN
    steady = _stabilised(current, wished, up, down, past, now)
    reason = ""
    if steady > current:
        most = _reach(up, current, past, now, up=True)
        if steady > most:
            steady, reason = most, "ScaleUpLimit"
    elif steady < current:
        least = _reach(down, current, past, now, up=False)
        if steady < least:
            steady, reason = least, "ScaleDownLimit"
    if steady > spec.max_replicas:
        return spec.max_replicas, "TooManyReplicas"
    if steady < spec.min_replicas:
        return spec.min_replicas, "TooFewReplicas"
    return steady, reason


def _stabilised(
    current: int, wished: int, up: ScalingRules, down: ScalingRules, past: Past, now: float
) -> int:
    """The lowest wish of the window on the way up, the highest on the way down."""
    past.wished.append((now, wished))
    up_window = up.stabilization_window_seconds or 0
    down_window = down.stabilization_window_seconds
    down_window = DOWN_WINDOW if down_window is None else down_window
    oldest = now - max(up_window, down_window)
    past.wished[:] = [each for each in past.wished if each[0] >= oldest]
    lowest = min(size for at, size in past.wished if at >= now - up_window)
    highest = max(size for at, size in past.wished if at >= now - down_window)
    return min(max(current, lowest), highest)


def _reach(rules: ScalingRules, current: int, past: Past, now: float, *, up: bool) -> int:
    """How far the policies let the size go in one step."""
    if rules.select_policy == "Disabled":
        return current
    policies = rules.policies or (_UP if up else _DOWN).policies
    found = []
    for policy in policies:
        recent = sum(
            change
            for at, change in past.steps
            if at > now - policy.period_seconds and (change > 0) == up
        )
        start = current - recent
        if policy.type == "Pods":
            found.append(start + policy.value if up else start - policy.value)
        elif up:
            found.append(ceil(start * (1 + policy.value / 100)))
        else:
            found.append(int(start * (1 - policy.value / 100)))
    widest = rules.select_policy != "Min"
    reach = max(found) if up == widest else min(found)
    return max(reach, current) if up else max(0, min(reach, current))
