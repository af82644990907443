"""The collections that a snapshot can hold. A new one is one line here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views import core, metrics, network, policy, storage, workloads
from kvestigate.observe import views

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects of a resource, decoded as `type`."""

    resource: Resource
    type: type[T]
    fields: str = ""
    """A field selector that the server applies: `type=kubernetes.io/tls`."""


def _of(name: str, type: type[T], fields: str = "") -> Listing[T]:
    return Listing(builtins.resource(name), type, fields)


NODES = _of("nodes", core.Node)
NAMESPACES = _of("namespaces", core.Namespace)
PODS = _of("pods", views.Pod)
DEPLOYMENTS = _of("deployments", workloads.Deployment)
STATEFUL_SETS = _of("statefulsets", workloads.StatefulSet)
DAEMON_SETS = _of("daemonsets", workloads.DaemonSet)
SERVICES = _of("services", network.Service)
ENDPOINT_SLICES = _of("endpointslices", network.EndpointSlice)
INGRESSES = _of("ingresses", network.Ingress)
NETWORK_POLICIES = _of("networkpolicies", network.NetworkPolicy)
CLAIMS = _of("persistentvolumeclaims", storage.PersistentVolumeClaim)
VOLUMES = _of("persistentvolumes", storage.PersistentVolume)
STORAGE_CLASSES = _of("storageclasses", storage.StorageClass)
BUDGETS = _of("poddisruptionbudgets", policy.PodDisruptionBudget)
TLS_SECRETS = _of("secrets", views.TlsSecret, "type=kubernetes.io/tls")
NODE_METRICS = Listing(builtins.NODE_METRICS, metrics.NodeMetrics)
POD_METRICS = Listing(builtins.POD_METRICS, metrics.PodMetrics)
