"""What rules about pods have in common: subjects, commands, times, and how containers end. Pure."""

from __future__ import annotations

from datetime import datetime

from kvestigate.health.cluster import Cluster, condition
from kvestigate.health.model import Subject
from kvestigate.kube.views.pods import TerminatedState
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import is_ready
from kvestigate.snapshot.pods import Container, Pod

_SIGNALS = {
    2: "SIGINT",
    6: "SIGABRT: the program aborted itself",
    8: "SIGFPE: an arithmetic error",
    9: "SIGKILL: killed from outside, by the kubelet or for want of memory",
    11: "SIGSEGV: a memory access error in the program",
    15: "SIGTERM: the program was asked to stop",
}
_CODES = {
    125: "the container runtime could not run the command",
    126: "the command was found but cannot be executed",
    127: "the command was not found",
}
_LONGEST = 1000
"""Characters of a message that are quoted; kubelets write at most this many, others may not."""
_SIGNALLED = 128
"""A program that signal N ended has the exit code 128 + N."""


def subject(pod: Pod, container: str = "") -> Subject:
    return Subject("Pod", pod.metadata.name, pod.metadata.namespace, container)


def describe(pod: Pod) -> str:
    return f"kvestigate describe pod {pod.metadata.name} -n {pod.metadata.namespace}"


def logs(pod: Pod, container: str, *, previous: bool) -> str:
    flags = f"-n {pod.metadata.namespace} -c {container}" + (" --previous" if previous else "")
    return f"kvestigate logs {pod.metadata.name} {flags}"


def since(moment: datetime | None) -> str:
    """` since 2026-03-01 11:30 UTC`; nothing for an unknown time."""
    return f" since {at(moment)}" if moment is not None else ""


def at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def unready_since(pod: Pod) -> datetime | None:
    """When the pod was last ready, or was first seen not to be."""
    ready = condition(pod.status.conditions, "Ready")
    return ready.last_transition_time if ready is not None else None


def quoted(message: str) -> str:
    """What somebody wrote, short enough to be searched and shown."""
    text = message.strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def sentence(text: str) -> str:
    """With one full stop at its end."""
    return text.strip().rstrip(".") + "."


def container_of(pod: Pod, name: str) -> Container:
    containers = pod.spec.all_containers
    return next((one for one in containers if one.name == name), Container(name=name))


def is_init(pod: Pod, name: str) -> bool:
    return any(
        container.name == name and container.restart_policy != "Always"
        for container in pod.spec.init_containers
    )


def titled(pod: Pod, name: str) -> str:
    """`Container web`, `Init container setup`, `Sidecar proxy`"""
    for container in pod.spec.init_containers:
        if container.name == name:
            return (
                f"Sidecar {name}"
                if container.restart_policy == "Always"
                else f"Init container {name}"
            )
    return f"Container {name}"


def how_it_ended(state: TerminatedState) -> str:
    """`exit code 1 (Error)`, with what the code means and the termination message."""
    how = f"killed by signal {state.signal}" if state.signal else f"exit code {state.exit_code}"
    reason = f" ({state.reason})" if state.reason else ""
    meaning, message = meaning_of(state), quoted(state.message)
    return (
        f"{how}{reason}" + (f", {meaning}" if meaning else "") + (f": {message}" if message else "")
    )


def meaning_of(state: TerminatedState) -> str:
    """What an exit code says beside its number; empty if nothing."""
    if state.reason in ("OOMKilled", "StartError", "ContainerCannotRun"):
        return ""
    if state.exit_code in _CODES:
        return _CODES[state.exit_code]
    return _SIGNALS.get(state.signal or state.exit_code - _SIGNALLED, "")


def is_seen_by_kubelet(pod: Pod) -> bool:
    """Whether a kubelet has reported on the pod; only then does the pod have containers."""
    return pod.status.phase not in ("", "Pending") or bool(pod.status.all_statuses)


def has_controller(pod: Pod) -> bool:
    return any(owner.controller for owner in pod.metadata.owner_references)


def troubled_node(cluster: Cluster, pod: Pod) -> tuple[Subject, ...]:
    """The pod's node if that is not ready; nothing if the node is fine or unknown."""
    node = cluster.find(listings.NODES, pod.spec.node_name) if pod.spec.node_name else None
    return (Subject("Node", pod.spec.node_name),) if node and not is_ready(node) else ()
