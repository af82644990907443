"""GPUs that nodes have lost, GPUs taken without a request, and GPUs free but scattered. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from kvestigate.health.cluster import Cluster, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.kube.eligibility import untolerated
from kvestigate.kube.requests import amounts, requests_of
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import NodeCapacity, capacities, requested
from kvestigate.snapshot.gpus import MIG_PREFIX, gpu_requests, gpus_only
from kvestigate.snapshot.objects import Node
from kvestigate.snapshot.pods import GPUS_SEEN, Pod
from kvestigate.snapshot.workloads import DaemonSet

_COUNT = "nvidia.com/gpu.count"
_PRESENT = {
    "nvidia.com/gpu.present": "nvidia.com/gpu",
    "nvidia.com/gpu.product": "nvidia.com/gpu",
    "amd.com/gpu.product-name": "amd.com/gpu",
}
"""Labels of nodes with GPUs -> the resource that their device plugin offers."""
_STATES = {
    "nvidia.com/mig.config.state": "Dividing the GPUs (MIG)",
    "nvidia.com/gpu-driver-upgrade-state": "The upgrade of the GPU driver",
    "nvidia.com/vgpu.config.state": "Dividing the GPUs (vGPU)",
    "nvidia.com/cc.mode.state": "Changing the confidential computing mode",
}
"""Labels of nodes -> what NVIDIA's operator does there."""
_NO_DEVICES = {"", "none", "void"}
_PLUGINS = ("nvidia-device-plugin", "amdgpu-device-plugin", "amd-gpu-device-plugin", "intel-gpu")
_INSTALLING = timedelta(minutes=10)
_REPORTING = timedelta(minutes=1)
_DEVICES = ("/dev/nvidia", "/dev/dri", "/dev/kfd")


@rule(
    "gpu-lost",
    "A node offers fewer GPUs than it has.",
    listings.NODES,
    uses=[listings.DAEMON_SETS, listings.DEVICE_SLICES],
)
def lost(cluster: Cluster) -> Iterator[Fault]:
    for node in cluster.of(listings.NODES):
        said = _unhealthy(node) or _missing(cluster, node)
        if said:
            left = sum(gpus_only(amounts(node.status.allocatable)).values())
            yield Fault(
                severity=Severity.WARNING if left else Severity.CRITICAL,
                subject=Subject("Node", node.metadata.name),
                evidence=said,
                why="Pods cannot get these GPUs. The log of the device plugin and the kernel's log "
                "(Xid errors) say why.",
                command=f"kvestigate describe node {node.metadata.name}",
                causes=_plugins_for(cluster, node),
            )


def _unhealthy(node: Node) -> str:
    """The kubelet counts in the capacity what the device plugin no longer calls healthy."""
    have, left = (
        gpus_only(amounts(part)) for part in (node.status.capacity, node.status.allocatable)
    )
    gone = {name: have[name] - left.get(name, 0) for name in have if have[name] > left.get(name, 0)}
    return " ".join(
        f"{count} of {have[name]} {name} {'is' if count == 1 else 'are'} not allocatable: the "
        "device plugin reports them as unhealthy, or has stopped."
        for name, count in gone.items()
    )


def _missing(cluster: Cluster, node: Node) -> str:
    """By the labels of the GPU feature discovery, of nodes whose GPUs are not divided."""
    labels, have = node.metadata.labels, gpus_only(amounts(node.status.capacity))
    # A driver may be installed for minutes, but only if somebody is there to do it.
    plugins = bool(_plugins(cluster)) or not cluster.knows(listings.DAEMON_SETS)
    patience = _INSTALLING if plugins and not any(have.values()) else _REPORTING
    if not _is_old(cluster, node.metadata.creation_timestamp, patience) or _by_claims(
        cluster, node
    ):
        return ""
    if not any(have.values()):
        label = next((label for label in _PRESENT if labels.get(label, "false") != "false"), "")
        if not label:
            return ""
        count = labels.get(_COUNT, "")
        plugin = "" if plugins else " No DaemonSet of a device plugin exists."
        return (
            f"The node has {count or 'some'} GPUs by its label {label}, but offers no "
            f"{_PRESENT[label]}: its device plugin or driver does not run.{plugin}"
        )
    divided = labels.get("nvidia.com/gpu.replicas", "1") not in ("0", "1") or any(
        name.startswith(MIG_PREFIX) or name.endswith(".shared") for name in have
    )
    written = labels.get(_COUNT, "")
    physical = int(written) if written.isascii() and written.isdigit() else 0
    if not divided and labels.get("nvidia.com/mig.strategy", "none") in ("", "none"):
        offered = have.get("nvidia.com/gpu", 0)
        if physical > offered:
            return f"The node has {physical} GPUs by its label {_COUNT}, but offers {offered}."
    return ""


def _is_old(cluster: Cluster, born: datetime | None, patience: timedelta) -> bool:
    return born is None or cluster.settled(born, patience)


def _by_claims(cluster: Cluster, node: Node) -> bool:
    """Its devices are offered by ResourceSlices instead."""
    return any(
        piece.spec.node_name == node.metadata.name for piece in cluster.of(listings.DEVICE_SLICES)
    )


def _plugins(cluster: Cluster) -> tuple[Subject, ...]:
    return tuple(
        subject_of("DaemonSet", one.metadata)
        for one in cluster.of(listings.DAEMON_SETS)
        if _is_plugin(one)
    )


def _plugins_for(cluster: Cluster, node: Node) -> tuple[Subject, ...]:
    """The device plugins, and their pods on the node."""
    plugins = _plugins(cluster)
    pods = (
        subject_of("Pod", pod.metadata)
        for plugin in plugins
        for pod in cluster.pods_of(plugin)
        if pod.spec.node_name == node.metadata.name
    )
    return (*plugins, *pods)


def _is_plugin(daemon_set: DaemonSet) -> bool:
    images = (container.image for container in daemon_set.spec.template.spec.containers)
    return any(word in text for text in (daemon_set.metadata.name, *images) for word in _PLUGINS)


@rule("gpu-plugin", "The DaemonSet of a GPU device plugin runs nowhere.", listings.DAEMON_SETS)
def plugins_without_pods(cluster: Cluster) -> Iterator[Fault]:
    nodes = [
        node.metadata.name
        for node in cluster.of(listings.NODES)
        if any(node.metadata.labels.get(label, "false") != "false" for label in _PRESENT)
    ]
    for one in cluster.of(listings.DAEMON_SETS):
        if not _is_plugin(one) or not nodes or one.status.desired_number_scheduled:
            continue
        if not _is_old(cluster, one.metadata.creation_timestamp, _REPORTING):
            continue
        yield Fault(
            severity=Severity.CRITICAL,
            subject=subject_of("DaemonSet", one.metadata),
            evidence=f"This device plugin runs on no node, but {counted(len(nodes), 'node')} "
            f"with GPUs exist ({', '.join(nodes[:3])}): its node selector or tolerations do not "
            "match them.",
            why="Without a device plugin a node offers no GPUs.",
            command=f"kvestigate describe daemonset {one.metadata.name} -n "
            f"{one.metadata.namespace}",
        )


@rule("gpu-setup-failed", "A change of a node's GPUs or of their driver failed.", listings.NODES)
def setup_failed(cluster: Cluster) -> Iterator[Fault]:
    """By the labels in which NVIDIA's operator keeps the state of its work."""
    for node in cluster.of(listings.NODES):
        labels = node.metadata.labels
        for label, work in _STATES.items():
            state = labels.get(label, "")
            if "failed" in state:
                wanted = labels.get(label.removesuffix(".state"), "")
                yield Fault(
                    severity=Severity.CRITICAL,
                    subject=Subject("Node", node.metadata.name),
                    evidence=f"{work} failed (label {label}={state}"
                    + (f", wanted: {wanted})." if wanted and wanted != state else ")."),
                    why="The node keeps its old devices or driver, or has none, until somebody "
                    "mends it.",
                    command="kubectl get pods -A -o wide --field-selector "
                    f"spec.nodeName={node.metadata.name}",
                    alike=label,
                )


@rule(
    "gpu-without-request",
    "A pod uses the GPUs of its node without a request.",
    listings.PODS,
    listings.NODES,
)
def without_request(cluster: Cluster) -> Iterator[Fault]:
    """Node agents, which look at all GPUs to measure them, are DaemonSets."""
    with_gpus = {
        node.metadata.name
        for node in cluster.of(listings.NODES)
        if any(gpus_only(amounts(node.status.capacity)).values())
    }
    for pod in cluster.pods if with_gpus else ():
        if pod.spec.node_name not in with_gpus or pod.metadata.namespace.startswith("kube-"):
            continue
        how = _takes(pod)
        if not how or any(gpu_requests(pod)) or cluster.workload(pod).kind == "DaemonSet":
            continue
        yield Fault(
            severity=Severity.WARNING,
            subject=subject_of("Pod", pod.metadata),
            evidence=f"{how} on node {pod.spec.node_name}, but requests no GPU.",
            why="The scheduler counts these GPUs as free and gives them to other pods, which then "
            "run out of GPU memory.",
            command=f"kvestigate describe pod {pod.metadata.name} -n {pod.metadata.namespace}",
            since=pod.metadata.creation_timestamp,
            alike=how,
        )


def _takes(pod: Pod) -> str:
    """How a pod gets at GPUs, if it does."""
    for container in pod.spec.all_containers:
        for variable in container.env:
            if variable.name == GPUS_SEEN and variable.value.strip() not in _NO_DEVICES:
                which = "all GPUs" if variable.value == "all" else f"GPUs {variable.value}"
                return f"Container {container.name} sees {which} ({GPUS_SEEN})"
    for volume in pod.spec.volumes:
        if volume.host_path is not None and volume.host_path.path.startswith(_DEVICES):
            return f"Volume {volume.name} mounts {volume.host_path.path} of the host"
    return ""


@rule(
    "gpu-scattered",
    "A pod waits for GPUs that are free, but on different nodes.",
    listings.PODS,
    listings.NODES,
)
def scattered(cluster: Cluster) -> Iterator[Fault]:
    if cluster.snapshot.namespace:
        return  # what other pods hold is unknown
    nodes: tuple[NodeCapacity, ...] | None = None
    by_name: Mapping[str, Node] = {node.metadata.name: node for node in cluster.of(listings.NODES)}
    for pod in cluster.pods:
        wanted = {} if pod.spec.node_name else gpus_only(requests_of(pod.spec))
        for resource, amount in wanted.items():
            if nodes is None:
                nodes = capacities(by_name.values(), cluster.snapshot.derived(requested))
            free = {
                node.name: node.free(resource)
                for node in nodes
                if node.ready
                and node.schedulable
                and node.free(resource) > 0
                and _welcome(pod, by_name[node.name])
            }
            if free and max(free.values()) < amount <= sum(free.values()):
                yield _scattered(pod, resource, amount, free)


def _welcome(pod: Pod, node: Node) -> bool:
    refused = untolerated(pod.spec.tolerations, node.spec.taints, ("NoSchedule", "NoExecute"))
    return not refused and pod.spec.node_selector.items() <= node.metadata.labels.items()


def _scattered(pod: Pod, resource: str, amount: int, free: Mapping[str, int]) -> Fault:
    own = subject_of("Pod", pod.metadata)
    return Fault(
        severity=Severity.WARNING,
        subject=own,
        causes=(own,),  # that it is pending says it all, as soon as the scheduler has said so
        evidence=f"The pod requests {amount} {resource}. {sum(free.values())} are free, but "
        f"scattered over {counted(len(free), 'node')}, at most {max(free.values())} on one.",
        why="Moving other pods together frees a node that is large enough.",
        command="kvestigate optimize plan --live",
        since=pod.metadata.creation_timestamp,
        alike=resource,
    )


RULES = (
    lost,
    plugins_without_pods,
    setup_failed,
    without_request,
    scattered,
)
