"""Pods that do not run, or do not run for long. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from kvestigate.kube.unschedulable import in_plain_words
from kvestigate.kube.views.pods import TerminatedState
from kvestigate.render.severity import Severity
from kvestigate.reports.findings.model import Finding, Rule, Subject
from kvestigate.snapshot import listings
from kvestigate.snapshot.objects import ContainerStatus, Pod
from kvestigate.snapshot.snapshot import Snapshot

_CHANGEABLE = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "CronJob")
"""Workloads whose template takes other requests while they run."""

_IMAGE_REASONS = {
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
}
_STARTING = timedelta(minutes=5)
"""A pod may take that long to be ready."""
_CONFIG_REASONS = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}


def crashing_containers(snapshot: Snapshot) -> tuple[tuple[Pod, ContainerStatus], ...]:
    return tuple(
        (pod, status)
        for pod, status in _statuses(snapshot)
        if status.state.waiting is not None and status.state.waiting.reason == "CrashLoopBackOff"
    )


def crash_loops(snapshot: Snapshot) -> Iterator[Finding]:
    for pod, status in crashing_containers(snapshot):
        last = status.last_state.terminated
        ended = how_it_ended(last) if last else "how it ended is not known"
        line = snapshot.last_log_lines.get((_namespace(pod), pod.metadata.name, status.name))
        yield Finding(
            rule="crash-loop",
            severity=Severity.CRITICAL,
            subject=subject(pod, status.name),
            evidence=f"container {status.name} was restarted {_times(status.restart_count)}: "
            f"{ended}" + (f"; last line: {line}" if line else ""),
            why="it fails as often as it is started, and is started less and less often",
            command=_logs(pod, status, previous=True),
        )


def out_of_memory(snapshot: Snapshot) -> Iterator[Finding]:
    for pod, status in _statuses(snapshot):
        for state in (status.state.terminated, status.last_state.terminated):
            if state is not None and state.reason == "OOMKilled":
                limit = _memory_limit(pod, status.name)
                allowed = f"its limit of {limit}" if limit else "what its node had left"
                yield Finding(
                    rule="out-of-memory",
                    severity=Severity.CRITICAL,
                    subject=subject(pod),
                    evidence=f"container {status.name} was killed for using more than {allowed}"
                    + (f", at {state.finished_at:%Y-%m-%d %H:%M} UTC" if state.finished_at else ""),
                    why="the kernel ends it at once, in the middle of whatever it was doing",
                    command=f"kvestigate describe pod {pod.metadata.name} -n {_namespace(pod)}",
                )
                break


def image_pulls(snapshot: Snapshot) -> Iterator[Finding]:
    for pod, status in _statuses(snapshot):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason in _IMAGE_REASONS:
            said = f": {waiting.message}" if waiting.message else ""
            yield Finding(
                rule="image-pull",
                severity=Severity.CRITICAL,
                subject=subject(pod),
                evidence=f"container {status.name} cannot get the image "
                f"{_image(pod, status.name)} ({waiting.reason}){said}",
                why="the container cannot start before its node has the image",
                command=f"kvestigate describe pod {pod.metadata.name} -n {_namespace(pod)}",
            )


def bad_configuration(snapshot: Snapshot) -> Iterator[Finding]:
    for pod, status in _statuses(snapshot):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason in _CONFIG_REASONS:
            yield Finding(
                rule="container-config",
                severity=Severity.CRITICAL,
                subject=subject(pod),
                evidence=f"container {status.name}: {waiting.reason}: {waiting.message}",
                why="something that the container names is missing, so it cannot be made",
                command=f"kvestigate describe pod {pod.metadata.name} -n {_namespace(pod)}",
            )


def pending(snapshot: Snapshot) -> Iterator[Finding]:
    for pod in snapshot.of(listings.PODS):
        if pod.status.phase != "Pending" or pod.spec.node_name:
            continue
        for condition in pod.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                yield Finding(
                    rule="pending",
                    severity=Severity.CRITICAL,
                    subject=subject(pod),
                    evidence=in_plain_words(condition.reason, condition.message),
                    why="it waits until a node fits, which may be never",
                    command=f"kvestigate describe pod {pod.metadata.name} -n {_namespace(pod)}",
                )


def never_ready(snapshot: Snapshot) -> Iterator[Finding]:
    """Only where all containers run: why others do not has a finding of its own."""
    for pod in snapshot.of(listings.PODS):
        if not pod.status.conditions:
            continue  # those that hold are not kept
        statuses = pod.status.container_statuses
        if pod.metadata.deletion_timestamp or not all(it.state.running for it in statuses):
            continue
        waiting = [it.name for it in statuses if not it.ready]
        for condition in pod.status.conditions:
            since = condition.last_transition_time
            if condition.type != "Ready" or since is None or not waiting:
                continue
            if snapshot.captured_at - since < _STARTING:
                continue
            yield Finding(
                rule="never-ready",
                severity=Severity.WARNING,
                subject=subject(pod, waiting[0]),
                evidence=f"{', '.join(waiting)} runs, but has not been ready since "
                f"{since:%Y-%m-%d %H:%M} UTC",
                why="no Service sends it anything, and rollouts wait for it",
                command=f"kvestigate describe pod {pod.metadata.name} -n {_namespace(pod)}",
            )


def without_requests(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding a workload: its pods are all alike."""
    seen: set[Subject] = set()
    for pod in snapshot.of(listings.PODS):
        if pod.finished or pod.spec.resources is not None:
            continue
        bare = [each.name for each in pod.spec.containers if not each.resources.requests]
        owner = owner_of(pod)
        if bare and owner not in seen:
            seen.add(owner)
            yield Finding(
                rule="no-requests",
                severity=Severity.INFO,
                subject=owner,
                evidence=f"no requests for {', '.join(bare)}",
                why="the scheduler takes it for nothing, and its node evicts it first",
                command=_request_something(owner, _namespace(pod)),
            )


def _request_something(owner: Subject, namespace: str) -> str:
    """A bare pod cannot be changed, nor the template of a Job."""
    kind = owner.kind.lower()
    if owner.kind not in _CHANGEABLE:
        return f"kvestigate describe {kind} {owner.name} -n {namespace}"
    return (
        f"kubectl -n {namespace} set resources {kind}/{owner.name} --requests=cpu=100m,memory=128Mi"
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def how_it_ended(state: TerminatedState) -> str:
    """`it exited with code 1 (Error)`, with what the container left to say."""
    how = f"killed by signal {state.signal}" if state.signal else f"exit code {state.exit_code}"
    reason = f" ({state.reason})" if state.reason else ""
    last_words = f": {state.message.strip()}" if state.message.strip() else ""
    return f"{how}{reason}{last_words}"


def subject(pod: Pod, container: str = "") -> Subject:
    return Subject("Pod", pod.metadata.name, pod.metadata.namespace, container)


def owner_of(pod: Pod) -> Subject:
    """The workload that a person would edit."""
    for owner in pod.metadata.owner_references:
        if not owner.controller:
            continue
        hashed = pod.metadata.labels.get("pod-template-hash", "")
        if owner.kind == "ReplicaSet" and hashed and owner.name.endswith(f"-{hashed}"):
            name = owner.name.removesuffix(f"-{hashed}")
            return Subject("Deployment", name, pod.metadata.namespace)
        return Subject(owner.kind, owner.name, pod.metadata.namespace)
    return subject(pod)


def _statuses(snapshot: Snapshot) -> tuple[tuple[Pod, ContainerStatus], ...]:
    """Containers that do not run now, or that ended at least once."""
    return snapshot.derived(_troubled)


def _troubled(snapshot: Snapshot) -> tuple[tuple[Pod, ContainerStatus], ...]:
    return tuple(
        (pod, status)
        for pod in snapshot.of(listings.PODS)
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
        if not status.state.running or status.last_state.terminated
    )


def _memory_limit(pod: Pod, name: str) -> str:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        if container.name == name:
            return container.resources.limits.get("memory", "")
    return ""


def _image(pod: Pod, name: str) -> str:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return next((it.image for it in containers if it.name == name), "")


def _logs(pod: Pod, status: ContainerStatus, *, previous: bool) -> str:
    flags = f"-n {_namespace(pod)} -c {status.name}" + (" --previous" if previous else "")
    return f"kvestigate logs {pod.metadata.name} {flags}"


def _namespace(pod: Pod) -> str:
    return pod.metadata.namespace


_NEEDS = (listings.PODS,)

RULES = (
    Rule("crash-loop", "A container fails again and again.", _NEEDS, crash_loops),
    Rule("out-of-memory", "A container was killed for its memory.", _NEEDS, out_of_memory),
    Rule("image-pull", "An image cannot be pulled.", _NEEDS, image_pulls),
    Rule("container-config", "A container cannot be made.", _NEEDS, bad_configuration),
    Rule("pending", "No node takes a pod.", _NEEDS, pending),
    Rule("never-ready", "A pod runs, but is not ready.", _NEEDS, never_ready),
    Rule("no-requests", "A workload does not say what it needs.", _NEEDS, without_requests),
)
