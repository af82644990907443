"""Containers that do not stay up: crash loops, memory, probes, restarts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from kvestigate.health.cluster import Cluster, condition
from kvestigate.health.model import Fault
from kvestigate.health.pods import (
    at,
    container_of,
    describe,
    how_it_ended,
    logs,
    quoted,
    sentence,
    since,
    subject,
    titled,
    troubled_node,
)
from kvestigate.health.rule import rule
from kvestigate.health.rules.starting import why_not_created
from kvestigate.kube.views.pods import CondensedContainerStatus, TerminatedState
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import Container, Pod, Probe

_MANY = 5
_LATELY = timedelta(hours=6)
"""Restarts that ended earlier are over."""
_MEMORY_LATELY = timedelta(hours=24)
_JUST_NOW = timedelta(hours=1)
_PROBED = timedelta(minutes=40)
"""A probe that failed only earlier does not fail any more."""
_GATE_PATIENCE = timedelta(minutes=2)
_PROBE_PATIENCE = timedelta(minutes=1)
_PROBE_KINDS = ("Readiness", "Startup", "Liveness")
_NOT_RUN = ("StartError", "ContainerCannotRun")
_UNHEALTHY = "Unhealthy"
_OUT_OF_MEMORY = "OOMKilled"
_SIGTERM, _SIGKILL = 143, 137


def crashing_containers(cluster: Cluster) -> tuple[tuple[Pod, CondensedContainerStatus], ...]:
    return tuple(
        (pod, status)
        for pod, status in cluster.troubled
        if status.state.waiting is not None and status.state.waiting.reason == "CrashLoopBackOff"
    )


@rule("crash-loop", "A container is in CrashLoopBackOff.", listings.PODS, uses=(listings.EVENTS,))
def crash_loops(cluster: Cluster) -> Iterator[Fault]:
    for pod, status in crashing_containers(cluster):
        last = status.last_state.terminated
        if last is not None and last.reason == _OUT_OF_MEMORY:
            continue  # for this there is a rule of its own
        ending = how_it_ended(last) if last else "unknown (the kubelet recorded none)"
        line = cluster.snapshot.last_log_lines.get(
            (pod.metadata.namespace, pod.metadata.name, status.name)
        )
        begun = pod.metadata.creation_timestamp
        yield Fault(
            severity=Severity.CRITICAL,
            subject=subject(pod, status.name),
            evidence=f"{titled(pod, status.name)} restarted "
            f"{counted(status.restart_count, 'time')}{since(begun)}; last run: {ending}"
            + _killed_by_probe(cluster, pod, status, last)
            + (f"; last log line: {line}" if line else ""),
            why=_why_it_ends(last),
            command=logs(pod, status.name, previous=True),
            since=begun,
            alike=f"{last.exit_code} {last.reason}" if last else "",
        )


def _why_it_ends(last: TerminatedState | None) -> str:
    if last is None:
        return "The container exits right after start; Kubernetes restarts it with growing delays."
    if last.reason in _NOT_RUN:
        cause = why_not_created(quoted(last.message))
        return "The container cannot be started" + (f": {cause}." if cause else ".")
    if last.exit_code == 0:
        return (
            "The command ends with success (exit code 0), but the restart policy Always restarts "
            "it: a command that ends belongs in a Job."
        )
    return "The container exits right after start; Kubernetes restarts it with growing delays."


def _killed_by_probe(
    cluster: Cluster, pod: Pod, status: CondensedContainerStatus, last: TerminatedState | None
) -> str:
    """Of a container that was killed: the liveness or startup probe or the hook that failed."""
    if last is not None and last.exit_code in (_SIGTERM, _SIGKILL):
        answer = _probe_answer(cluster, pod, status.name, ("Liveness", "Startup"))
        if answer:
            return f"; the kubelet killed it: {answer}"
    hooks = cluster.events(subject(pod), "FailedPostStartHook")
    return f"; its postStart hook fails: {quoted(hooks[0].message)}" if hooks else ""


@rule("out-of-memory", "A container was OOM-killed.", listings.PODS)
def out_of_memory(cluster: Cluster) -> Iterator[Fault]:
    """Not of a container that has run since for a day."""
    for pod, status in cluster.troubled:
        for state in (status.state.terminated, status.last_state.terminated):
            if state is None or state.reason != _OUT_OF_MEMORY:
                continue
            runs = status.state.running is not None
            if runs and cluster.settled(state.finished_at, _MEMORY_LATELY):
                continue
            over = runs and cluster.settled(state.finished_at, _JUST_NOW)
            yield Fault(
                severity=Severity.WARNING if over else Severity.CRITICAL,
                subject=subject(pod),
                evidence=_memory_evidence(pod, status, state),
                why="The kernel ends the process at once; unsaved work is lost.",
                command=describe(pod),
                since=state.finished_at,
                alike=status.name,
            )
            break


def _memory_evidence(pod: Pod, status: CondensedContainerStatus, state: TerminatedState) -> str:
    limit = container_of(pod, status.name).resources.limits.get("memory", "")
    cause = (
        f"exceeded its memory limit of {limit}"
        if limit
        else "has no memory limit, and the node ran out of memory"
    )
    when = f" at {at(state.finished_at)}" if state.finished_at else ""
    again = f" ({counted(status.restart_count, 'restart')})" if status.restart_count else ""
    if status.state.waiting is not None:
        again += f" and is in {status.state.waiting.reason}"
    return f"{titled(pod, status.name)} was OOM-killed{when}{again}: it {cause}."


@rule(
    "never-ready",
    "A pod is running but not ready.",
    listings.PODS,
    uses=(listings.EVENTS, listings.NODES),
)
def never_ready(cluster: Cluster) -> Iterator[Fault]:
    """Only pods whose containers all run: for the others there is another rule."""
    for pod in cluster.pods:
        if not pod.status.conditions or pod.metadata.deletion_timestamp:
            continue  # a snapshot keeps only conditions that are not True
        ready = condition(pod.status.conditions, "Ready")
        statuses = pod.status.container_statuses
        if ready is None or not all(status.state.running for status in statuses):
            continue
        if troubled_node(cluster, pod):
            continue
        waiting = [status.name for status in statuses if not status.ready]
        if waiting:
            yield from _unready(cluster, pod, waiting, ready.last_transition_time)
        elif statuses and cluster.settled(ready.last_transition_time, _GATE_PATIENCE):
            yield from _gated(pod, ready.message, ready.last_transition_time)


def _unready(
    cluster: Cluster, pod: Pod, waiting: Sequence[str], begun: datetime | None
) -> Iterator[Fault]:
    answer = _probe_answer(cluster, pod, waiting[0], _PROBE_KINDS)
    container = container_of(pod, waiting[0])
    if not cluster.settled(begun, _patience(container, failing=bool(answer))):
        return
    probe = container.readiness_probe
    cause = answer or (f"its readiness probe is {_described(probe)}" if probe else "")
    yield Fault(
        severity=Severity.CRITICAL,
        subject=subject(pod, waiting[0]),
        evidence=f"{_containers(waiting)} running but not ready{since(begun)}"
        + (f": {sentence(cause)}" if cause else "."),
        why="Services send no traffic to the pod, and rollouts wait for it.",
        command=describe(pod),
        since=begun,
        alike=waiting[0],
    )


def _gated(pod: Pod, message: str, begun: datetime | None) -> Iterator[Fault]:
    """All containers are ready, and the pod is not: a readiness gate."""
    gates = [gate.condition_type for gate in pod.spec.readiness_gates]
    if gates:
        yield Fault(
            severity=Severity.CRITICAL,
            subject=subject(pod),
            evidence=f"All containers are ready, but the pod is not{since(begun)}: readiness gate "
            f"{', '.join(gates)}" + (f": {message}" if message else "."),
            why="Services send no traffic to the pod until a controller sets this condition.",
            command=describe(pod),
            since=begun,
            alike="gate",
        )


def _patience(container: Container, *, failing: bool) -> timedelta:
    """How long a container may take to become ready."""
    longest = _PROBE_PATIENCE if failing else timedelta(minutes=5)
    startup, readiness = container.startup_probe, container.readiness_probe
    seconds = 0
    if startup is not None:
        seconds += startup.initial_delay_seconds
        seconds += startup.period_seconds * startup.failure_threshold
    if readiness is not None:
        seconds += readiness.initial_delay_seconds
        seconds += readiness.period_seconds * readiness.failure_threshold
    return max(longest, timedelta(seconds=seconds))


def _probe_answer(cluster: Cluster, pod: Pod, container: str, kinds: Sequence[str]) -> str:
    """`its readiness probe (GET :80/health) fails: statuscode: 503`, of the newest event."""
    for event in cluster.events(subject(pod), _UNHEALTHY):
        path = event.involved_object.field_path
        if path and f"{{{container}}}" not in path:
            continue
        kind = next((kind for kind in kinds if event.message.startswith(kind)), "")
        if not kind or cluster.settled(event.last_seen, _PROBED):
            continue
        probes = container_of(pod, container)
        probe: Probe | None = getattr(probes, f"{kind.lower()}_probe")
        answer = re.sub(r"^\w+ probe (?:failed|errored)[^:]*: ", "", quoted(event.message))
        how = f" ({_described(probe)})" if probe is not None else ""
        return f"its {kind.lower()} probe{how} fails: {answer}"
    return ""


def _described(probe: Probe) -> str:
    if probe.http_get is not None:
        return f"{probe.http_get.scheme} GET :{probe.http_get.port}{probe.http_get.path or '/'}"
    if probe.tcp_socket is not None:
        return f"TCP port {probe.tcp_socket.port}"
    if probe.grpc is not None:
        return f"gRPC port {probe.grpc.port}"
    return "a command"


def _containers(names: Sequence[str]) -> str:
    """`Container web is`, `Containers web, proxy are`"""
    if len(names) == 1:
        return f"Container {names[0]} is"
    return f"Containers {', '.join(names)} are"


@rule(
    "liveness-failing",
    "A container is restarted because its liveness or startup probe fails.",
    listings.PODS,
    listings.EVENTS,
)
def liveness_failing(cluster: Cluster) -> Iterator[Fault]:
    for pod, status in cluster.troubled:
        if not status.restart_count or status.state.running is None or pod.finished:
            continue
        answer = _probe_answer(cluster, pod, status.name, ("Liveness", "Startup"))
        if answer:
            last = status.last_state.terminated
            yield Fault(
                severity=Severity.CRITICAL if not status.ready else Severity.WARNING,
                subject=subject(pod, status.name),
                evidence=f"The kubelet restarted container {status.name} "
                f"{counted(status.restart_count, 'time')}: {sentence(answer)}",
                why="A container whose liveness or startup probe fails is killed and restarted.",
                command=describe(pod),
                since=last.finished_at if last else None,
                alike=status.name,
            )


@rule("many-restarts", "A container restarts again and again.", listings.PODS)
def many_restarts(cluster: Cluster) -> Iterator[Fault]:
    """Containers that run now: those that wait for a restart are in a crash loop."""
    for pod, status in cluster.troubled:
        if status.state.running is None or pod.finished or not _restarts(cluster, status):
            continue
        last = status.last_state.terminated
        when = f" at {at(last.finished_at)}" if last is not None and last.finished_at else ""
        ending = f"; the last run ended{when}: {how_it_ended(last)}" if last is not None else ""
        yield Fault(
            severity=Severity.WARNING,
            subject=subject(pod, status.name),
            evidence=f"{titled(pod, status.name)} restarted "
            f"{counted(status.restart_count, 'time')}{since(pod.metadata.creation_timestamp)}"
            f"{ending}.",
            why="Each restart interrupts what the container does.",
            command=logs(pod, status.name, previous=True),
            since=pod.metadata.creation_timestamp,
            alike=status.name,
        )


def _restarts(cluster: Cluster, status: CondensedContainerStatus) -> bool:
    last = status.last_state.terminated
    finished = last.finished_at if last is not None else None
    if status.restart_count >= _MANY:
        return not cluster.settled(finished, _LATELY)
    fails = last is not None and last.exit_code != 0 and last.reason != _OUT_OF_MEMORY
    return (
        status.restart_count > 1
        and fails
        and finished is not None
        and not cluster.settled(finished)
    )


@rule("container-ended", "A container has failed and is not restarted.", listings.PODS)
def ended_containers(cluster: Cluster) -> Iterator[Fault]:
    """In pods that go on without it, or that wait for its next start."""
    for pod, status in cluster.troubled:
        state = status.state.terminated
        if state is None or not state.exit_code or state.reason == _OUT_OF_MEMORY:
            continue
        stays = pod.spec.restart_policy == "Never"
        again = stays or status.restart_count  # the first restart comes at once
        if pod.status.phase == "Running" and again and not pod.metadata.deletion_timestamp:
            yield Fault(
                severity=Severity.CRITICAL,
                subject=subject(pod, status.name),
                evidence=f"{titled(pod, status.name)} ended: {how_it_ended(state)}"
                + (f" (restart policy {pod.spec.restart_policy})" if stays else ""),
                why="The pod goes on without this container."
                if stays
                else "Kubernetes restarts the container with growing delays.",
                command=logs(pod, status.name, previous=False),
                since=state.finished_at,
                alike=status.name,
            )


RULES = (
    crash_loops,
    out_of_memory,
    never_ready,
    liveness_failing,
    many_restarts,
    ended_containers,
)
