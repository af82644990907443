"""The one list of identities that parts of this process act as, with their rights. Pure.

A part acts on one plane only, as a user of that plane (`Insider`), and the plane's RBAC decides
what the part may do. The users are those of a Kubernetes cluster whose kube-controller-manager runs
with `--use-service-account-credentials`, so the roles and bindings that every plane starts with
give them their rights. `RIGHTS` is for parts that Kubernetes does not have, or has outside of it.

Only the API server itself is in `system:masters`, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from kvestigate.cluster.plane.access.authn import service_accounts
from kvestigate.cluster.plane.access.authz.nodes import KUBELET, NODES
from kvestigate.cluster.plane.access.authz.rbac import GROUP
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User


class Identity(NamedTuple):
    """A part of a cluster, as the API server sees it."""

    agent: str
    """The program: its User-Agent, and the manager of the fields that it writes."""
    user: User


def _account(name: str) -> User:
    """A service account of kube-system."""
    groups = service_accounts.groups("kube-system")
    return User(f"system:serviceaccount:kube-system:{name}", groups)


_CONTROLLERS = "kube-controller-manager"

SERVER = Identity("kube-apiserver", User("system:apiserver", (MASTERS, AUTHENTICATED)))
"""Fills a new cluster, and reports on APIServices: in Kubernetes, the API server does that."""
MANAGER = Identity(_CONTROLLERS, User("system:kube-controller-manager", (AUTHENTICATED,)))
"""Follows all resources and records events for all controllers."""
SCHEDULER = Identity("kube-scheduler", User("system:kube-scheduler", (AUTHENTICATED,)))
KUBELETS = Identity("kubelet", User("system:kvestigate:kubelets", (AUTHENTICATED,)))
"""Follows pods and Services once for all nodes of the process."""
GPU_DRIVER = Identity("gpu.nvidia.com", _account("gpu-driver"))
"""Says in claims that their GPUs are ready, as NVIDIA's driver does on each node."""
METRICS = Identity("metrics-server", _account("metrics-server"))

_FOLLOW = ["list", "watch"]
_SLICES = "discovery.k8s.io"
Rules = list[dict[str, list[str]]]
RIGHTS: tuple[tuple[Identity, Rules], ...] = (
    (
        KUBELETS,
        [
            {"apiGroups": [""], "resources": ["pods", "services"], "verbs": _FOLLOW},
            {"apiGroups": [_SLICES], "resources": ["endpointslices"], "verbs": _FOLLOW},
        ],
    ),
    (
        GPU_DRIVER,
        [
            {
                "apiGroups": ["resource.k8s.io"],
                "resources": ["resourceclaims/status"],
                "verbs": ["patch"],
            }
        ],
    ),
    (METRICS, [{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}]),
)
"""The rules of identities that no role of Kubernetes is for."""

_ACCOUNTS: Mapping[str, str] = MappingProxyType(
    {
        "node-lifecycle-controller": "node-controller",
        "taint-eviction-controller": "node-controller",
        "serviceaccount-controller": "service-account-controller",
        "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
        "replicationcontroller-controller": "replication-controller",
        "daemonset-controller": "daemon-set-controller",
        "garbage-collector-controller": "generic-garbage-collector",
        "pod-garbage-collector-controller": "pod-garbage-collector",
        "persistentvolumeclaim-binder-controller": "persistent-volume-binder",
        "persistentvolume-binder-controller": "persistent-volume-binder",
        "persistentvolumeclaim-protection-controller": "pvc-protection-controller",
        "persistentvolume-protection-controller": "pv-protection-controller",
        "horizontal-pod-autoscaler-controller": "horizontal-pod-autoscaler",
        "resourceclaim-controller": "resource-claim-controller",
        "certificatesigningrequest-approving-controller": "certificate-controller",
        "certificatesigningrequest-cleaner-controller": "certificate-controller",
        "certificatesigningrequest-signing-controller": "certificate-controller",
    }
)
"""The service accounts of controllers that are not named like them."""


def controller(name: str) -> Identity:
    """`deployment-controller` acts as the service account of that name in kube-system."""
    if name == "apiservice-availability-controller":
        return SERVER
    return Identity(_CONTROLLERS, _account(_ACCOUNTS.get(name, name)))


def kubelet(node: str) -> Identity:
    """May write to its own node and to the pods on it, and read what these need."""
    return Identity("kubelet", User(KUBELET + node, (NODES, AUTHENTICATED)))


def grants() -> Iterator[dict[str, Any]]:
    """The roles and bindings for `RIGHTS`."""
    for identity, rules in RIGHTS:
        metadata = {"name": f"kvestigate:{identity.agent}"}
        subject = {"apiGroup": GROUP, "kind": "User", "name": identity.user.name}
        role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": metadata["name"]}
        version = f"{GROUP}/v1"
        yield {"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules}
        yield {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": role,
            "subjects": [subject],
        }
