"""Pods that do not start, do not stay up or are not ready. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.kube.requests import requests_of
from kvestigate.kube.unschedulable import in_plain_words
from kvestigate.kube.views.pods import CondensedContainerStatus, TerminatedState
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import capacities, requested
from kvestigate.snapshot.gpus import gpus_only
from kvestigate.snapshot.pods import Pod

_CHANGEABLE = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "CronJob")
"""Workloads whose pod template can be changed."""

_IMAGE_REASONS = {
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
}
_STARTING = timedelta(minutes=5)
"""How long a pod may take to become ready."""
_CONFIG_REASONS = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}


def _finding(pod: Pod, *, evidence: str, why: str) -> Fault:
    """A critical finding that `describe pod` explains."""
    return Fault(
        severity=Severity.CRITICAL,
        subject=subject(pod),
        evidence=evidence,
        why=why,
        command=f"kvestigate describe pod {pod.metadata.name} -n {_namespace(pod)}",
    )


def crashing_containers(cluster: Cluster) -> tuple[tuple[Pod, CondensedContainerStatus], ...]:
    return tuple(
        (pod, status)
        for pod, status in cluster.troubled
        if status.state.waiting is not None and status.state.waiting.reason == "CrashLoopBackOff"
    )


@rule("crash-loop", "A container is in CrashLoopBackOff.", listings.PODS)
def crash_loops(cluster: Cluster) -> Iterator[Fault]:
    for pod, status in crashing_containers(cluster):
        last = status.last_state.terminated
        ended = how_it_ended(last) if last else "unknown (the kubelet recorded none)"
        line = cluster.snapshot.last_log_lines.get(
            (_namespace(pod), pod.metadata.name, status.name)
        )
        yield Fault(
            severity=Severity.CRITICAL,
            subject=subject(pod, status.name),
            evidence=f"Container {status.name} restarted {counted(status.restart_count, 'time')}; "
            f"last run: {ended}" + (f"; last log line: {line}" if line else ""),
            why="The container exits right after start; Kubernetes restarts it with growing "
            "delays.",
            command=_logs(pod, status, previous=True),
        )


@rule("out-of-memory", "A container was OOM-killed.", listings.PODS)
def out_of_memory(cluster: Cluster) -> Iterator[Fault]:
    for pod, status in cluster.troubled:
        for state in (status.state.terminated, status.last_state.terminated):
            if state is not None and state.reason == "OOMKilled":
                limit = _memory_limit(pod, status.name)
                cause = (
                    f"exceeded its memory limit of {limit}"
                    if limit
                    else "has no memory limit, and the node ran out of memory"
                )
                at = f" at {state.finished_at:%Y-%m-%d %H:%M} UTC" if state.finished_at else ""
                yield _finding(
                    pod,
                    evidence=f"Container {status.name} was OOM-killed{at}: it {cause}.",
                    why="The kernel ends the process at once; unsaved work is lost.",
                )
                break


@rule("image-pull", "A container image cannot be pulled.", listings.PODS)
def image_pulls(cluster: Cluster) -> Iterator[Fault]:
    for pod, status in cluster.troubled:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason in _IMAGE_REASONS:
            message = f": {waiting.message}" if waiting.message else ""
            yield _finding(
                pod,
                evidence=f"Container {status.name} cannot pull the image "
                f"{_image(pod, status.name)} ({waiting.reason}){message}",
                why="The container cannot start without its image.",
            )


@rule("container-config", "A container cannot be created.", listings.PODS)
def bad_configuration(cluster: Cluster) -> Iterator[Fault]:
    for pod, status in cluster.troubled:
        waiting = status.state.waiting
        if waiting is not None and waiting.reason in _CONFIG_REASONS:
            yield _finding(
                pod,
                evidence=f"Container {status.name}: {waiting.reason}: {waiting.message}",
                why="The container cannot be created: something in its spec is missing or invalid.",
            )


@rule("pending", "A pod is unschedulable.", listings.PODS)
def pending(cluster: Cluster) -> Iterator[Fault]:
    for pod in cluster.of(listings.PODS):
        if pod.status.phase != "Pending" or pod.spec.node_name:
            continue
        for condition in pod.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                yield _finding(
                    pod,
                    evidence=in_plain_words(condition.reason, condition.message),
                    why=_pending_until(cluster, pod),
                )


def _pending_until(cluster: Cluster, pod: Pod) -> str:
    """With the largest free block of GPUs if no node has enough and all requests are known."""
    if cluster.snapshot.namespace:
        return "The pod stays Pending until a node fits."
    nodes = capacities(cluster.of(listings.NODES), cluster.snapshot.derived(requested))
    usable = [node for node in nodes if node.ready and node.schedulable]
    for resource, amount in gpus_only(requests_of(pod.spec)).items() if usable else ():
        best = max(usable, key=lambda node: node.free(resource))
        if best.free(resource) < amount:
            return (
                f"The pod stays Pending until a node has {amount} free {resource}. The largest "
                f"free block is {max(best.free(resource), 0)} ({best.name})."
            )
    return "The pod stays Pending until a node fits."


@rule("never-ready", "A pod is running but not ready.", listings.PODS)
def never_ready(cluster: Cluster) -> Iterator[Fault]:
    """Only pods whose containers all run: for the others there is another rule."""
    for pod in cluster.of(listings.PODS):
        if not pod.status.conditions:
            continue  # a snapshot keeps only conditions that are not True
        statuses = pod.status.container_statuses
        if pod.metadata.deletion_timestamp or not all(status.state.running for status in statuses):
            continue
        waiting = [status.name for status in statuses if not status.ready]
        for condition in pod.status.conditions:
            since = condition.last_transition_time
            if condition.type != "Ready" or since is None or not waiting:
                continue
            if cluster.now - since < _STARTING:
                continue
            yield Fault(
                severity=Severity.WARNING,
                subject=subject(pod, waiting[0]),
                evidence=f"{_containers(waiting, 'is', 'are')} running but not ready since "
                f"{since:%Y-%m-%d %H:%M} UTC.",
                why="Services send no traffic to the pod, and rollouts wait for it.",
                command=f"kvestigate describe pod {pod.metadata.name} -n {_namespace(pod)}",
            )


def _containers(names: Sequence[str], verb: str, plural: str) -> str:
    """`Container web is`, `Containers web, proxy are`"""
    if len(names) == 1:
        return f"Container {names[0]} {verb}"
    return f"Containers {', '.join(names)} {plural}"


@rule("no-requests", "A container has no resource requests.", listings.PODS)
def without_requests(cluster: Cluster) -> Iterator[Fault]:
    """One finding for each workload, because its pods share a template."""
    reported: set[Subject] = set()
    for pod in cluster.of(listings.PODS):
        if pod.finished or pod.spec.resources is not None:
            continue
        bare = [
            container.name for container in pod.spec.containers if not container.resources.requests
        ]
        owner = cluster.workload(pod)
        if bare and owner not in reported:
            reported.add(owner)
            yield Fault(
                severity=Severity.INFO,
                subject=owner,
                evidence=f"{_containers(bare, 'has', 'have')} no resource requests.",
                why="The scheduler counts these containers as 0, and the kubelet evicts the pods "
                "first when the node runs out of memory.",
                command=_request_something(owner, _namespace(pod)),
            )


def _request_something(owner: Subject, namespace: str) -> str:
    """A pod without a controller cannot be changed, nor can the template of a Job."""
    kind = owner.kind.lower()
    if owner.kind not in _CHANGEABLE:
        return f"kvestigate describe {kind} {owner.name} -n {namespace}"
    return (
        f"kubectl -n {namespace} set resources {kind}/{owner.name} --requests=cpu=100m,memory=128Mi"
    )


def how_it_ended(state: TerminatedState) -> str:
    """`exit code 1 (Error)`, with the termination message if there is one."""
    how = f"killed by signal {state.signal}" if state.signal else f"exit code {state.exit_code}"
    reason = f" ({state.reason})" if state.reason else ""
    message = f": {state.message.strip()}" if state.message.strip() else ""
    return f"{how}{reason}{message}"


def subject(pod: Pod, container: str = "") -> Subject:
    return Subject("Pod", pod.metadata.name, pod.metadata.namespace, container)


def _memory_limit(pod: Pod, name: str) -> str:
    for container in pod.spec.all_containers:
        if container.name == name:
            return container.resources.limits.get("memory", "")
    return ""


def _image(pod: Pod, name: str) -> str:
    containers = pod.spec.all_containers
    return next((container.image for container in containers if container.name == name), "")


def _logs(pod: Pod, status: CondensedContainerStatus, *, previous: bool) -> str:
    flags = f"-n {_namespace(pod)} -c {status.name}" + (" --previous" if previous else "")
    return f"kvestigate logs {pod.metadata.name} {flags}"


def _namespace(pod: Pod) -> str:
    return pod.metadata.namespace


RULES = (
    crash_loops,
    out_of_memory,
    image_pulls,
    bad_configuration,
    pending,
    never_ready,
    without_requests,
)
