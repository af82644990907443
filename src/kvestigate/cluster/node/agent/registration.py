"""The Node object and its Lease. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.gpu.model import gpu_annotations, gpu_capacity, node_labels
from kvestigate.cluster.node.hosts.interface import Facts
from kvestigate.errors import InputError
from kvestigate.kube import quantities
from kvestigate.kube.facts import version
from kvestigate.kube.resources import Resource
from kvestigate.kube.times import micro_text, text
from kvestigate.kube.views.core import Node

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
LEASE_NAMESPACE = "kube-node-lease"

# An API server that knows this feature passes WebSockets on; SPDY is not spoken here.
_FEATURES = ("ExtendWebSocketsToKubelet",)

_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def node_object(config: NodeConfig, facts: Facts) -> dict[str, Any]:
    """What the agent creates; its status is written apart."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": config.name,
            "labels": labels(config, facts),
            "annotations": {**gpu_annotations(config.gpus), **config.annotations},
        },
        "spec": {"taints": [dict(taint) for taint in config.taints]} if config.taints else {},
    }


def labels(config: NodeConfig, facts: Facts) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": config.name,
        "kubernetes.io/os": facts.operating_system,
        "kubernetes.io/arch": facts.architecture,
        "beta.kubernetes.io/os": facts.operating_system,
        "beta.kubernetes.io/arch": facts.architecture,
        **node_labels(config.gpus),
        **config.labels,
    }


def capacity(config: NodeConfig, facts: Facts) -> dict[str, str]:
    return {
        "cpu": str(facts.cpu),
        "memory": f"{facts.memory // 1024}Ki",
        "ephemeral-storage": f"{facts.disk // 1024}Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "pods": str(config.pods),
        **gpu_capacity(config.gpus),
        **config.capacity,
    }


def claimed_memory(config: NodeConfig) -> int:
    """The bytes of memory that a node is said to have; 0 if it has what its machine has."""
    try:
        return quantities.whole(config.capacity.get("memory", "0"))
    except InputError:
        return 0  # a Node object may say anything


def is_current(node: Node, config: NodeConfig, facts: Facts) -> bool:
    """Whether a Node says all that the agent would, so that only its lease has to be renewed."""
    statuses = {condition.type: condition.status for condition in node.status.conditions}
    return (
        labels(config, facts).items() <= node.metadata.labels.items()
        and node.status.capacity == node.status.allocatable == capacity(config, facts)
        and all(statuses.get(name) == status for name, status, *_ in _CONDITIONS)
        and not config.serves  # else the port is another one each time
    )


def node_status(
    config: NodeConfig, facts: Facts, *, port: int, now: float, since: float
) -> dict[str, Any]:
    """The status, as a strategic merge patch."""
    amounts = capacity(config, facts)
    limits = "".join(f"; {limit}" for limit in facts.limits)
    return {
        "capacity": amounts,
        "allocatable": amounts,
        # No Hostname: API servers try names first, and these nodes are in nobody's DNS.
        "addresses": [{"type": "InternalIP", "address": config.address}],
        "declaredFeatures": list(_FEATURES),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "architecture": facts.architecture,
            "bootID": facts.boot_id,
            "containerRuntimeVersion": facts.runtime,
            "kernelVersion": facts.kernel,
            "kubeProxyVersion": "",
            "kubeletVersion": version(),
            "machineID": facts.machine_id,
            "operatingSystem": facts.operating_system,
            "osImage": facts.os_image,
            "systemUUID": facts.machine_id,
        },
        "conditions": [
            {
                "type": name,
                "status": status,
                "reason": reason,
                "message": message + (limits if name == "Ready" else ""),
                "lastHeartbeatTime": text(now),
                "lastTransitionTime": text(since),
            }
            for name, status, reason, message in _CONDITIONS
        ],
    }


def lease_object(config: NodeConfig, now: float, node_uid: str) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": config.name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": config.name, "uid": node_uid}
            ],
        },
        "spec": {
            "holderIdentity": config.name,
            "leaseDurationSeconds": config.lease_seconds,
            "renewTime": micro_text(now),
        },
    }
