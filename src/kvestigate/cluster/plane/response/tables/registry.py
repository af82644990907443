"""The columns of each kind. One list, no import side effects."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds.custom.kind import CustomKind
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.response.tables import (
    access,
    core,
    custom,
    networks,
    pods,
    scheduling,
    storage,
    workloads,
)
from kvestigate.cluster.plane.response.tables.columns import NAME, Columns, column

NEVER = "0001-01-01T00:00:00Z"
"""The creation time of an object that has none."""

GENERIC = Columns(
    NAME,
    column("Created At", "metadata.creationTimestamp", NEVER, type="date"),
    empty_rows=None,
)
"""Of kinds that have no columns of their own."""

COLUMNS: dict[tuple[str, str], Columns] = {
    ("", "configmaps"): core.CONFIG_MAPS,
    ("", "endpoints"): networks.ENDPOINTS,
    ("", "events"): core.EVENTS,
    ("events.k8s.io", "events"): core.EVENTS,
    ("", "namespaces"): core.NAMESPACES,
    ("", "nodes"): core.NODES,
    ("", "persistentvolumeclaims"): storage.CLAIMS,
    ("", "persistentvolumes"): storage.VOLUMES,
    ("", "pods"): pods.PODS,
    ("", "podtemplates"): workloads.POD_TEMPLATES,
    ("", "replicationcontrollers"): workloads.REPLICATION_CONTROLLERS,
    ("", "resourcequotas"): core.RESOURCE_QUOTAS,
    ("", "secrets"): core.SECRETS,
    ("", "serviceaccounts"): core.NAME_AND_AGE,
    ("", "services"): networks.SERVICES,
    ("autoscaling", "scales"): core.SCALES,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): access.MUTATING_POLICIES,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): access.POLICY_BINDINGS,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): access.WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): access.VALIDATING_POLICIES,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): access.POLICY_BINDINGS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): access.WEBHOOKS,
    ("apiregistration.k8s.io", "apiservices"): networks.API_SERVICES,
    ("apps", "controllerrevisions"): workloads.CONTROLLER_REVISIONS,
    ("apps", "daemonsets"): workloads.DAEMON_SETS,
    ("apps", "deployments"): workloads.DEPLOYMENTS,
    ("apps", "replicasets"): workloads.REPLICA_SETS,
    ("apps", "statefulsets"): workloads.STATEFUL_SETS,
    ("autoscaling", "horizontalpodautoscalers"): scheduling.AUTOSCALERS,
    ("batch", "cronjobs"): workloads.CRON_JOBS,
    ("batch", "jobs"): workloads.JOBS,
    ("certificates.k8s.io", "certificatesigningrequests"): access.SIGNING_REQUESTS,
    ("coordination.k8s.io", "leases"): scheduling.LEASES,
    ("discovery.k8s.io", "endpointslices"): networks.ENDPOINT_SLICES,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): access.FLOW_SCHEMAS,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): access.PRIORITY_LEVELS,
    ("metrics.k8s.io", "nodes"): core.METRICS,
    ("metrics.k8s.io", "pods"): core.METRICS,
    ("networking.k8s.io", "ingressclasses"): networks.INGRESS_CLASSES,
    ("networking.k8s.io", "ingresses"): networks.INGRESSES,
    ("networking.k8s.io", "ipaddresses"): networks.IP_ADDRESSES,
    ("networking.k8s.io", "networkpolicies"): networks.NETWORK_POLICIES,
    ("networking.k8s.io", "servicecidrs"): networks.SERVICE_CIDRS,
    ("node.k8s.io", "runtimeclasses"): scheduling.RUNTIME_CLASSES,
    ("policy", "poddisruptionbudgets"): scheduling.BUDGETS,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): access.BINDINGS,
    ("rbac.authorization.k8s.io", "rolebindings"): access.BINDINGS,
    ("resource.k8s.io", "deviceclasses"): core.NAME_AND_AGE,
    ("resource.k8s.io", "resourceclaims"): scheduling.RESOURCE_CLAIMS,
    ("resource.k8s.io", "resourceclaimtemplates"): core.NAME_AND_AGE,
    ("resource.k8s.io", "resourceslices"): scheduling.RESOURCE_SLICES,
    ("scheduling.k8s.io", "priorityclasses"): scheduling.PRIORITY_CLASSES,
    ("storage.k8s.io", "csidrivers"): storage.CSI_DRIVERS,
    ("storage.k8s.io", "csinodes"): storage.CSI_NODES,
    ("storage.k8s.io", "storageclasses"): storage.STORAGE_CLASSES,
    ("storage.k8s.io", "volumeattachments"): storage.VOLUME_ATTACHMENTS,
    ("storage.k8s.io", "volumeattributesclasses"): storage.VOLUME_ATTRIBUTES_CLASSES,
}


def columns_of(kind: Kind) -> Columns:
    if isinstance(kind, CustomKind):
        return custom.columns_for(kind)
    return COLUMNS.get((kind.resource.group, kind.resource.plural), GENERIC)
