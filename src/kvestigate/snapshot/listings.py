"""The sources that snapshots are taken of. A new one is one line here."""

from __future__ import annotations

from typing import TypeVar

from kvestigate.kube import builtins
from kvestigate.kube.views import core, metrics, network, storage
from kvestigate.snapshot import objects
from kvestigate.snapshot.condensing import PodCondenser
from kvestigate.snapshot.exporters import GpuExporters
from kvestigate.snapshot.source import Listing, MetricSamples

T = TypeVar("T")


def _of(name: str, type: type[T], fields: str = "") -> Listing[T]:
    return Listing(builtins.resource(name), type, fields)


NODES = _of("nodes", core.Node)
NAMESPACES = _of("namespaces", core.Namespace)
PODS = Listing(builtins.resource("pods"), objects.Pod, condense=PodCondenser)
"""Reduced to what reports use; `PODS_IN_FULL` have all fields of `objects.Pod`."""
PODS_IN_FULL = _of("pods", objects.Pod)
DEPLOYMENTS = _of("deployments", objects.Deployment)
STATEFUL_SETS = _of("statefulsets", objects.StatefulSet)
DAEMON_SETS = _of("daemonsets", objects.DaemonSet)
SERVICES = _of("services", network.Service)
ENDPOINT_SLICES = _of("endpointslices", network.EndpointSlice)
INGRESSES = _of("ingresses", objects.Ingress)
NETWORK_POLICIES = _of("networkpolicies", objects.NetworkPolicy)
CLAIMS = _of("persistentvolumeclaims", storage.PersistentVolumeClaim)
VOLUMES = _of("persistentvolumes", storage.PersistentVolume)
STORAGE_CLASSES = _of("storageclasses", storage.StorageClass)
BUDGETS = _of("poddisruptionbudgets", objects.PodDisruptionBudget)
JOBS = _of("jobs", objects.Job)
CRON_JOBS = Listing(builtins.resource("cronjobs"), objects.Written, metadata_only=True)
AUTOSCALERS = Listing(
    builtins.resource("horizontalpodautoscalers"), objects.Written, metadata_only=True
)
TLS_SECRETS = _of("secrets", objects.TlsSecret, "type=kubernetes.io/tls")
NODE_METRICS = Listing(builtins.NODE_METRICS, metrics.NodeMetrics)
POD_METRICS = Listing(builtins.POD_METRICS, metrics.PodMetrics)
DEPRECATED_REQUESTS = MetricSamples("apiserver_requested_deprecated_apis")
GPU_READINGS = GpuExporters()
