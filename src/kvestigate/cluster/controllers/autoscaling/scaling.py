"""How fast and how far a workload may follow what is wished of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from kvestigate.cluster.controllers.objects import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    ScalingPolicy,
    ScalingRules,
)

DOWN_WINDOW = 300
_ALWAYS_REACHED = 4
"""Pods that there may be after one step, however few there were."""

_UP = ScalingRules(
    stabilization_window_seconds=0,
    policies=(ScalingPolicy("Percent", 100, 15), ScalingPolicy("Pods", 4, 15)),
)
_DOWN = ScalingRules(
    stabilization_window_seconds=DOWN_WINDOW, policies=(ScalingPolicy("Percent", 100, 15),)
)


@dataclass(slots=True)
class Past:
    """What an autoscaler remembers between two looks."""

    wished: list[tuple[float, int]] = field(default_factory=list)
    """Recommendations, with their times."""
    steps: list[tuple[float, int]] = field(default_factory=list)
    """Changes that were made: positive up, negative down."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A size, and what made it another than was wished for."""

    size: int
    limit: str = ""
    """`ScaleUpLimit`, `TooManyReplicas` and so on; empty within range."""
    stabilised: str = ""
    """`ScaleDownStabilized`: recent wishes outweigh the last one."""


def limited(
    scaler: HorizontalPodAutoscaler, current: int, wished: int, past: Past, now: float
) -> Verdict:
    """The size within windows, policies and bounds; `current` is within the bounds."""
    behavior = scaler.spec.behavior
    up = _UP if behavior is None else behavior.scale_up or _UP
    down = _DOWN if behavior is None else behavior.scale_down or _DOWN
    lowest, highest = _recent(wished, up, down, past, now)
    if behavior is None:
        # Who says nothing of the pace is held to one that needs no memory.
        steady, most, least = highest, max(2 * current, _ALWAYS_REACHED), 0
    else:
        steady = min(max(current, lowest), highest)
        most = _reach(up, current, past, now, up=True)
        least = _reach(down, current, past, now, up=False)
    stabilised = ""
    if steady != wished:
        stabilised = "ScaleDownStabilized" if wished < steady else "ScaleUpStabilized"
    size, limit = _bounded(scaler.spec, current, steady, most, least)
    return Verdict(size, limit, stabilised)


def _bounded(
    spec: HorizontalPodAutoscalerSpec, current: int, wished: int, most: int, least: int
) -> tuple[int, str]:
    if wished > current and wished > min(most, spec.max_replicas):
        if most < spec.max_replicas:
            return most, "ScaleUpLimit"
        return spec.max_replicas, "TooManyReplicas"
    if wished < current and wished < max(least, spec.min_replicas):
        if least > spec.min_replicas:
            return least, "ScaleDownLimit"
        return spec.min_replicas, "TooFewReplicas"
    return wished, ""


def _recent(
    wished: int, up: ScalingRules, down: ScalingRules, past: Past, now: float
) -> tuple[int, int]:
    """The lowest wish of the window on the way up, the highest of that on the way down."""
    past.wished.append((now, wished))
    up_window = up.stabilization_window_seconds or 0
    down_window = down.stabilization_window_seconds
    down_window = DOWN_WINDOW if down_window is None else down_window
    oldest = now - max(up_window, down_window)
    past.wished[:] = [wish for wish in past.wished if wish[0] >= oldest]
    lowest = min(size for at, size in past.wished if at >= now - up_window)
    highest = max(size for at, size in past.wished if at >= now - down_window)
    return lowest, highest


def _reach(rules: ScalingRules, current: int, past: Past, now: float, *, up: bool) -> int:
    """How far the policies let the size go in one step."""
    if rules.select_policy == "Disabled":
        return current
    policies = rules.policies or (_UP if up else _DOWN).policies
    limits = []
    for policy in policies:
        start = current - sum(
            change for at, change in past.steps if at > now - policy.period_seconds
        )
        if policy.type == "Pods":
            limits.append(start + policy.value if up else start - policy.value)
        elif up:
            limits.append(ceil(start * (1 + policy.value / 100)))
        else:
            limits.append(int(start * (1 - policy.value / 100)))
    widest = rules.select_policy != "Min"
    reach = max(limits) if up == widest else min(limits)
    return max(reach, current) if up else max(0, min(reach, current))
