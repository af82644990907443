"""The sources that snapshots are taken of. A new one is one line here."""

from __future__ import annotations

from typing import TypeVar

from kvestigate.kube import builtins
from kvestigate.kube.views import core, metrics, network, storage
from kvestigate.kube.views.devices import DeviceClass
from kvestigate.snapshot import administration as rules
from kvestigate.snapshot import device_kinds, objects, workloads
from kvestigate.snapshot.condensing import PodCondenser
from kvestigate.snapshot.exporters import GpuExporters
from kvestigate.snapshot.meta import Named
from kvestigate.snapshot.pods import Pod
from kvestigate.snapshot.source import CustomObjects, Listing, MetricSamples, ServerVersion

T = TypeVar("T")


def _of(name: str, type: type[T], fields: str = "", *, most: int = 0) -> Listing[T]:
    return Listing(builtins.resource(name), type, fields, most=most)


def _names(name: str) -> Listing[Named]:
    """Only the metadata: the API server does not even send the rest."""
    return Listing(builtins.resource(name), Named, metadata_only=True)


NODES = _of("nodes", objects.Node)
NAMESPACES = _of("namespaces", core.Namespace)
PODS = Listing(builtins.resource("pods"), Pod, condense=PodCondenser)
"""With what replicas have in common kept once; `PODS_IN_FULL` keep every field of `Pod`."""
PODS_IN_FULL = _of("pods", Pod)
EVENTS = _of("events", objects.Event, "type=Warning", most=5_000)
"""Only warnings, and of those not more than a snapshot can hold."""

DEPLOYMENTS = _of("deployments", workloads.Deployment)
REPLICA_SETS = _of("replicasets", workloads.ReplicaSet)
REPLICATION_CONTROLLERS = _of("replicationcontrollers", workloads.ReplicaSet)
STATEFUL_SETS = _of("statefulsets", workloads.StatefulSet)
DAEMON_SETS = _of("daemonsets", workloads.DaemonSet)
JOBS = _of("jobs", workloads.Job)
CRON_JOBS = _of("cronjobs", workloads.CronJob)
AUTOSCALERS = _of("horizontalpodautoscalers", workloads.Autoscaler)
BUDGETS = _of("poddisruptionbudgets", objects.PodDisruptionBudget)

SERVICES = _of("services", network.Service)
ENDPOINT_SLICES = _of("endpointslices", network.EndpointSlice)
INGRESSES = _of("ingresses", objects.Ingress)
INGRESS_CLASSES = _of("ingressclasses", rules.IngressClass)
NETWORK_POLICIES = _of("networkpolicies", objects.NetworkPolicy)

CLAIMS = _of("persistentvolumeclaims", storage.PersistentVolumeClaim)
VOLUMES = _of("persistentvolumes", storage.PersistentVolume)
STORAGE_CLASSES = _of("storageclasses", storage.StorageClass)
VOLUME_ATTACHMENTS = _of("volumeattachments", rules.VolumeAttachment)

CONFIG_MAPS = _names("configmaps")
SECRETS = _names("secrets")
TLS_SECRETS = _of("secrets", objects.TlsSecret, "type=kubernetes.io/tls")
SERVICE_ACCOUNTS = _names("serviceaccounts")
RESOURCE_CLAIMS = _of("resourceclaims", device_kinds.DeviceClaim)
RESOURCE_CLAIM_TEMPLATES = _names("resourceclaimtemplates")
DEVICE_CLASSES = _of("deviceclasses", DeviceClass)
DEVICE_SLICES = _of("resourceslices", device_kinds.DeviceSlice)

QUOTAS = _of("resourcequotas", rules.ResourceQuota)
LIMIT_RANGES = _of("limitranges", rules.LimitRange)
PRIORITY_CLASSES = _of("priorityclasses", rules.PriorityClass)
RUNTIME_CLASSES = _names("runtimeclasses")
ROLES = _of("roles", rules.Role)
CLUSTER_ROLES = _of("clusterroles", rules.Role)
ROLE_BINDINGS = _of("rolebindings", rules.RoleBinding)
CLUSTER_ROLE_BINDINGS = _of("clusterrolebindings", rules.RoleBinding)
VALIDATING_WEBHOOKS = _of("validatingwebhookconfigurations", rules.WebhookConfiguration)
MUTATING_WEBHOOKS = _of("mutatingwebhookconfigurations", rules.WebhookConfiguration)
ADMISSION_POLICIES = _of("validatingadmissionpolicies", rules.AdmissionPolicy)
POLICY_BINDINGS = _of("validatingadmissionpolicybindings", rules.PolicyBinding)
FLOW_SCHEMAS = _of("flowschemas", rules.FlowSchema)
API_SERVICES = _of("apiservices", rules.ApiService)
DEFINITIONS = _of("customresourcedefinitions", rules.Definition)
CUSTOM_OBJECTS = CustomObjects()
CERTIFICATE_REQUESTS = _of("certificatesigningrequests", rules.CertificateRequest)
LEASES = _of("leases", rules.Lease)

NODE_METRICS = Listing(builtins.NODE_METRICS, metrics.NodeMetrics)
POD_METRICS = Listing(builtins.POD_METRICS, metrics.PodMetrics)
DEPRECATED_REQUESTS = MetricSamples("apiserver_requested_deprecated_apis")
SERVER_VERSION = ServerVersion()
GPU_READINGS = GpuExporters()
