"""What the failure of a Job's pod means: policy rules, and how long to wait after it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.objects import ExitCodes, FailurePolicy, FailureRule
from kvestigate.cluster.controllers.pods import is_leaving
from kvestigate.cluster.controllers.times import seconds
from kvestigate.kube.views.pods import ContainerStatus, Pod

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 600.0
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"

FAIL_JOB, FAIL_INDEX, IGNORE, COUNT = "FailJob", "FailIndex", "Ignore", "Count"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says of one failed pod."""

    action: str = COUNT
    message: str = ""


def judge(policy: FailurePolicy | None, pod: Pod) -> Verdict:
    """The first rule that matches decides; without one the failure counts."""
    for position, rule in enumerate(policy.rules if policy else ()):
        cause = _cause(rule, pod)
        if cause:
            return Verdict(rule.action, f"{cause} matching {rule.action} rule at index {position}")
    return Verdict()


def _cause(rule: FailureRule, pod: Pod) -> str:
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        cause = _exit(rule.on_exit_codes, pod)
        if cause is not None:
            name, code = cause
            return f"Container {name} for pod {where} failed with exit code {code}"
    for pattern in rule.on_pod_conditions:
        present = conditions.find(pod.status.conditions, pattern.type)
        if present is not None and present.status == pattern.status:
            return f"Pod {where} has condition {pattern.type}"
    return ""


def _exit(wanted: ExitCodes, pod: Pod) -> tuple[str, int] | None:
    for status in _statuses(pod):
        if wanted.container_name and wanted.container_name != status.name:
            continue
        ended = status.state.terminated
        if ended is None or not ended.exit_code:
            continue
        if (ended.exit_code in wanted.values) == (wanted.operator == "In"):
            return status.name, ended.exit_code
    return None


def _statuses(pod: Pod) -> Iterable[ContainerStatus]:
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def is_failed(pod: Pod, *, only_failed: bool) -> bool:
    """Failed, or deleted before it could end, unless replacements wait for the true end."""
    if pod.status.phase == "Failed":
        return True
    return not only_failed and is_leaving(pod) and pod.status.phase != "Succeeded"


def ended_at(pod: Pod) -> float:
    """When the pod ended: the end of its last container, or the best that is known."""
    ends = [
        seconds(status.state.terminated.finished_at)
        for status in pod.status.container_statuses
        if status.state.terminated is not None
    ]
    known = max(ends, default=0.0)
    if known:
        return known
    metadata = pod.metadata
    return seconds(metadata.deletion_timestamp) or seconds(metadata.creation_timestamp)


def pause(failed: Sequence[Pod], succeeded: Sequence[Pod], now: float) -> float:
    """Seconds to wait before the next pod: twice as long after each failure in a row."""
    good = max(map(ended_at, succeeded), default=0.0)
    ends = [end for end in map(ended_at, failed) if end > good]
    if not ends:
        return 0.0
    return remaining(len(ends), max(ends), now)


def remaining(failures: int, last: float, now: float) -> float:
    if failures <= 0:
        return 0.0
    # The exponent is bounded: the pause reaches its cap long before.
    wait = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 10))
    return max(0.0, last + wait - now)


def failure_count(pod: Pod) -> int:
    """How often the pod's index had failed before it."""
    text = pod.metadata.annotations.get(FAILURE_COUNT, "")
    return int(text) if text.isdecimal() else 0
