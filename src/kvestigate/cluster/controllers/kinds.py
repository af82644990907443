"""The resources that controllers read and write, each with the one view they all share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from kvestigate.client.cache import V
from kvestigate.cluster.controllers import objects
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.core import Lease, Namespace, Node
from kvestigate.kube.views.devices import ResourceClaim
from kvestigate.kube.views.meta import PartialObject
from kvestigate.kube.views.network import Endpoints, EndpointSlice, Service
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.kube.views.storage import PersistentVolume, PersistentVolumeClaim, StorageClass


@dataclass(frozen=True, slots=True)
class Kind(Generic[V]):
    """A resource and the part of its objects that is kept."""

    resource: Resource
    view: type[V]


def _kind(name: str, view: type[V]) -> Kind[V]:
    return Kind(builtins.resource(name), view)


PODS = _kind("pods", Pod)
NODES = _kind("nodes", Node)
LEASES = _kind("leases", Lease)
NAMESPACES = _kind("namespaces", Namespace)
SERVICES = _kind("services", Service)
ENDPOINTS = _kind("endpoints", Endpoints)
ENDPOINT_SLICES = _kind("endpointslices", EndpointSlice)
SERVICE_ACCOUNTS = _kind("serviceaccounts", PartialObject)
ROOT_CERTIFICATES = _kind("configmaps", objects.RootCertificate)
CLAIMS = _kind("persistentvolumeclaims", PersistentVolumeClaim)
VOLUMES = _kind("persistentvolumes", PersistentVolume)
STORAGE_CLASSES = _kind("storageclasses", StorageClass)
BUDGETS = _kind("poddisruptionbudgets", PodDisruptionBudget)
QUOTAS = _kind("resourcequotas", objects.ResourceQuota)
REVISIONS = _kind("controllerrevisions", objects.ControllerRevision)
REPLICA_SETS = _kind("replicasets", objects.ReplicaSet)
REPLICATION_CONTROLLERS = _kind("replicationcontrollers", objects.ReplicationController)
DEPLOYMENTS = _kind("deployments", objects.Deployment)
STATEFUL_SETS = _kind("statefulsets", objects.StatefulSet)
DAEMON_SETS = _kind("daemonsets", objects.DaemonSet)
JOBS = _kind("jobs", objects.Job)
CRON_JOBS = _kind("cronjobs", objects.CronJob)
AUTOSCALERS = _kind("horizontalpodautoscalers", objects.HorizontalPodAutoscaler)
RESOURCE_CLAIMS = _kind("resourceclaims", ResourceClaim)
CLAIM_TEMPLATES = _kind("resourceclaimtemplates", objects.ResourceClaimTemplate)
API_SERVICES = _kind("apiservices", objects.ApiService)
SIGNING_REQUESTS = _kind("certificatesigningrequests", objects.SigningRequest)
DEFINITIONS = _kind("customresourcedefinitions", PartialObject)
