"""The nodes or pods of a fan-out. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from kvestigate.errors import NotFound, UsageError
from kvestigate.kube.containers import container_of
from kvestigate.kube.views.pods import Pod
from kvestigate.node_access.reach import Hosts
from kvestigate.operation import NAMESPACE, param

_OVER = ("Succeeded", "Failed")


class TargetKind(enum.Enum):
    NODES = "nodes"
    """The hosts of nodes, through the node-access DaemonSet."""
    PODS = "pods"
    DEPLOYMENT = "deployment"


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """Which targets to select; empty fields do not restrict the selection."""

    target: Annotated[
        TargetKind, param("The hosts of nodes, pods of a namespace (-n), or those of a Deployment.")
    ]
    nodes: Annotated[tuple[str, ...], param("Only this node.", "--node", metavar="NODE")] = ()
    exclude_nodes: Annotated[
        tuple[str, ...], param("Leave this node out.", "--exclude-node", metavar="NODE")
    ] = ()
    selector: Annotated[
        str, param("Only pods with these labels.", "-l", "--selector", metavar="SELECTOR")
    ] = ""
    pods: Annotated[tuple[str, ...], param("Only this pod.", "--pod", metavar="POD")] = ()
    deployment: Annotated[str, param("Deployment whose pods are meant.", metavar="NAME")] = ""
    container: Annotated[
        str, param("Container of each pod.", "-c", "--container", metavar="NAME")
    ] = ""
    """The pod's default container when empty."""
    namespace: Annotated[str, NAMESPACE] = ""
    """The namespace of the pods or the Deployment; empty: the namespace of the context."""

    def check(self) -> None:
        """Raises UsageError for options of another kind of target."""
        given = {
            "--node": self.nodes,
            "--exclude-node": self.exclude_nodes,
            "--selector": self.selector,
            "--pod": self.pods,
            "--deployment": self.deployment,
            "--container": self.container,
        }
        fitting = _FLAGS[self.target]
        for flag, value in given.items():
            if value and flag not in fitting:
                raise UsageError(
                    f"{flag} cannot be used with --target {self.target.value}",
                    hint=f"--target {self.target.value} takes {', '.join(fitting)}",
                )
        if self.target is TargetKind.DEPLOYMENT and not self.deployment:
            raise UsageError(
                "--target deployment needs a --deployment", hint="add --deployment NAME"
            )


_FLAGS = {
    TargetKind.NODES: ("--node", "--exclude-node"),
    TargetKind.PODS: ("--selector", "--pod", "--container"),
    TargetKind.DEPLOYMENT: ("--deployment", "--container"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """One container, or one host that is reached through a container."""

    name: str
    """The name of the node or the pod."""
    node: str
    namespace: str
    pod: str
    container: str
    wrapper: tuple[str, ...] = ()
    """Put before each command: `chroot /host` to run on the host."""

    def argv(self, command: Sequence[str]) -> tuple[str, ...]:
        return (*self.wrapper, *command)


@dataclass(frozen=True, slots=True)
class UnreachableTarget:
    """A selected node or pod that cannot be reached now."""

    name: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Targets:
    kind: TargetKind
    found: tuple[Target, ...]
    unreachable: tuple[UnreachableTarget, ...] = ()


def chosen_hosts(hosts: Hosts, options: TargetOptions) -> Targets:
    """The selected nodes. Raises NotFound for a name that is not a node."""
    known = {*hosts.nodes, *hosts.unreachable}
    for name in (*options.nodes, *options.exclude_nodes):
        if name not in known:
            raise NotFound(
                f"there is no node {name!r}", hint=f"the nodes are: {', '.join(sorted(known))}"
            )
    selected = (set(options.nodes) or known) - set(options.exclude_nodes)
    reachable = [
        Target(name, name, host.namespace, host.pod, host.container, host.argv(()))
        for name, host in hosts.nodes.items()
        if name in selected
    ]
    others = [
        UnreachableTarget(name, name, reason)
        for name, reason in hosts.unreachable.items()
        if name in selected
    ]
    return Targets(options.target, tuple(reachable), tuple(others))


def chosen_pods(pods: Iterable[Pod], options: TargetOptions) -> Targets:
    """The running pods. Completed and terminating pods are included only if named."""
    reachable, others = [], []
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        name, node = pod.metadata.name, pod.spec.node_name
        over = pod.status.phase in _OVER or pod.metadata.deletion_timestamp is not None
        if over and name not in options.pods:
            continue
        container = container_of(pod, options.container)
        if reason := _obstacle(pod, container):
            others.append(UnreachableTarget(name, node, reason))
        else:
            reachable.append(Target(name, node, pod.metadata.namespace, name, container))
    return Targets(options.target, tuple(reachable), tuple(others))


def _obstacle(pod: Pod, container: str) -> str:
    if pod.metadata.deletion_timestamp is not None:
        return "terminating"
    if pod.status.phase in _OVER:
        return f"completed ({pod.status.phase})"
    states = {
        status.name: status.state
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)
    }
    state = states.get(container)
    if state is None or state.running is None:
        waiting = state.waiting.reason if state is not None and state.waiting is not None else ""
        return f"container {container} is not running" + (f": {waiting}" if waiting else "")
    return ""
