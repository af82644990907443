"""Which kinds differ from the generic one. One list, no import side effects."""

from __future__ import annotations

from functools import cache

from kvestigate.cluster.plane.kinds.access.certificate_requests import CertificateSigningRequestKind
from kvestigate.cluster.plane.kinds.access.flow_control import FlowSchemaKind, PriorityLevelKind
from kvestigate.cluster.plane.kinds.access.rbac import (
    ClusterRoleBindingKind,
    ClusterRoleKind,
    RoleBindingKind,
    RoleKind,
)
from kvestigate.cluster.plane.kinds.api_services import APIServiceKind
from kvestigate.cluster.plane.kinds.config_maps import ConfigMapKind
from kvestigate.cluster.plane.kinds.custom.definition_kind import DefinitionKind
from kvestigate.cluster.plane.kinds.devices.claims import (
    DeviceClassKind,
    ResourceClaimKind,
    ResourceClaimTemplateKind,
)
from kvestigate.cluster.plane.kinds.devices.slices import ResourceSliceKind
from kvestigate.cluster.plane.kinds.events import EventKind, EventView
from kvestigate.cluster.plane.kinds.limit_ranges import LimitRangeKind
from kvestigate.cluster.plane.kinds.namespaces import NamespaceKind
from kvestigate.cluster.plane.kinds.network.endpoint_slices import EndpointSliceKind
from kvestigate.cluster.plane.kinds.network.endpoints import EndpointsKind
from kvestigate.cluster.plane.kinds.network.ingresses import IngressClassKind, IngressKind
from kvestigate.cluster.plane.kinds.network.policies import NetworkPolicyKind
from kvestigate.cluster.plane.kinds.network.service_networks import IPAddressKind, ServiceCIDRKind
from kvestigate.cluster.plane.kinds.network.services import ServiceKind
from kvestigate.cluster.plane.kinds.nodes import NodeKind
from kvestigate.cluster.plane.kinds.pods.kind import PodKind
from kvestigate.cluster.plane.kinds.policies.admission_policies import (
    MutatingPolicyBindingKind,
    MutatingPolicyKind,
    PolicyBindingKind,
    ValidatingPolicyKind,
)
from kvestigate.cluster.plane.kinds.policies.webhooks import MutatingWebhooksKind, WebhooksKind
from kvestigate.cluster.plane.kinds.priority_classes import PriorityClassKind
from kvestigate.cluster.plane.kinds.quotas import ResourceQuotaKind
from kvestigate.cluster.plane.kinds.runtime_classes import RuntimeClassKind
from kvestigate.cluster.plane.kinds.secrets import SecretKind
from kvestigate.cluster.plane.kinds.simple import (
    ComponentStatusKind,
    ControllerRevisionKind,
    LeaseKind,
    ServiceAccountKind,
)
from kvestigate.cluster.plane.kinds.storage.claims import ClaimKind
from kvestigate.cluster.plane.kinds.storage.classes import (
    StorageClassKind,
    VolumeAttributesClassKind,
)
from kvestigate.cluster.plane.kinds.storage.csi import (
    CSIDriverKind,
    CSINodeKind,
    CSIStorageCapacityKind,
    VolumeAttachmentKind,
)
from kvestigate.cluster.plane.kinds.storage.volumes import VolumeKind
from kvestigate.cluster.plane.kinds.view import View
from kvestigate.cluster.plane.kinds.workloads.autoscaler_view import AutoscalerV1
from kvestigate.cluster.plane.kinds.workloads.autoscalers import AutoscalerKind
from kvestigate.cluster.plane.kinds.workloads.budgets import BudgetKind
from kvestigate.cluster.plane.kinds.workloads.cronjobs import CronJobKind
from kvestigate.cluster.plane.kinds.workloads.daemonsets import DaemonSetKind
from kvestigate.cluster.plane.kinds.workloads.deployments import DeploymentKind
from kvestigate.cluster.plane.kinds.workloads.jobs import JobKind
from kvestigate.cluster.plane.kinds.workloads.replicasets import ReplicaSetKind
from kvestigate.cluster.plane.kinds.workloads.replication_controllers import (
    PodTemplateKind,
    ReplicationControllerKind,
)
from kvestigate.cluster.plane.kinds.workloads.statefulsets import StatefulSetKind
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource

Address = tuple[str, str, str]
"""(group, version, plural)"""

KINDS: dict[tuple[str, str], type[Kind]] = {
    ("apps", "controllerrevisions"): ControllerRevisionKind,
    ("apps", "daemonsets"): DaemonSetKind,
    ("apps", "deployments"): DeploymentKind,
    ("apps", "replicasets"): ReplicaSetKind,
    ("apps", "statefulsets"): StatefulSetKind,
    ("networking.k8s.io", "ingressclasses"): IngressClassKind,
    ("networking.k8s.io", "ingresses"): IngressKind,
    ("networking.k8s.io", "ipaddresses"): IPAddressKind,
    ("networking.k8s.io", "networkpolicies"): NetworkPolicyKind,
    ("networking.k8s.io", "servicecidrs"): ServiceCIDRKind,
    ("policy", "poddisruptionbudgets"): BudgetKind,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): ClusterRoleBindingKind,
    ("rbac.authorization.k8s.io", "clusterroles"): ClusterRoleKind,
    ("rbac.authorization.k8s.io", "rolebindings"): RoleBindingKind,
    ("rbac.authorization.k8s.io", "roles"): RoleKind,
    ("scheduling.k8s.io", "priorityclasses"): PriorityClassKind,
    ("coordination.k8s.io", "leases"): LeaseKind,
    ("discovery.k8s.io", "endpointslices"): EndpointSliceKind,
    ("node.k8s.io", "runtimeclasses"): RuntimeClassKind,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): MutatingPolicyKind,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): MutatingPolicyBindingKind,
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
    ): MutatingWebhooksKind,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): ValidatingPolicyKind,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): PolicyBindingKind,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): WebhooksKind,
    ("apiextensions.k8s.io", "customresourcedefinitions"): DefinitionKind,
    ("apiregistration.k8s.io", "apiservices"): APIServiceKind,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): FlowSchemaKind,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): PriorityLevelKind,
    ("resource.k8s.io", "deviceclasses"): DeviceClassKind,
    ("resource.k8s.io", "resourceclaims"): ResourceClaimKind,
    ("resource.k8s.io", "resourceclaimtemplates"): ResourceClaimTemplateKind,
    ("resource.k8s.io", "resourceslices"): ResourceSliceKind,
    ("storage.k8s.io", "csidrivers"): CSIDriverKind,
    ("storage.k8s.io", "csinodes"): CSINodeKind,
    ("storage.k8s.io", "csistoragecapacities"): CSIStorageCapacityKind,
    ("storage.k8s.io", "volumeattachments"): VolumeAttachmentKind,
    ("storage.k8s.io", "storageclasses"): StorageClassKind,
    ("storage.k8s.io", "volumeattributesclasses"): VolumeAttributesClassKind,
    ("autoscaling", "horizontalpodautoscalers"): AutoscalerKind,
    ("batch", "cronjobs"): CronJobKind,
    ("batch", "jobs"): JobKind,
    ("certificates.k8s.io", "certificatesigningrequests"): CertificateSigningRequestKind,
    ("", "componentstatuses"): ComponentStatusKind,
    ("", "configmaps"): ConfigMapKind,
    ("", "endpoints"): EndpointsKind,
    ("", "events"): EventKind,
    ("", "limitranges"): LimitRangeKind,
    ("", "nodes"): NodeKind,
    ("", "persistentvolumeclaims"): ClaimKind,
    ("", "persistentvolumes"): VolumeKind,
    ("", "podtemplates"): PodTemplateKind,
    ("", "replicationcontrollers"): ReplicationControllerKind,
    ("", "resourcequotas"): ResourceQuotaKind,
    ("", "secrets"): SecretKind,
    ("", "serviceaccounts"): ServiceAccountKind,
    ("", "namespaces"): NamespaceKind,
    ("", "pods"): PodKind,
    ("", "services"): ServiceKind,
}

VIEWS: dict[Address, tuple[type[View], Address]] = {
    ("autoscaling", "v1", "horizontalpodautoscalers"): (
        AutoscalerV1,
        ("autoscaling", "v2", "horizontalpodautoscalers"),
    ),
    ("events.k8s.io", "v1", "events"): (EventView, ("", "v1", "events")),
}
"""Versions that are kept as another, and as which."""


@cache
def builtin() -> dict[Address, Kind]:
    """Every built-in kind by its address."""
    resources = {
        (resource.group, resource.version, resource.plural): resource
        for resource in builtins.registry()
    }
    kinds = {at: _kind(resource) for at, resource in resources.items() if at not in VIEWS}
    for at, (view, stored) in VIEWS.items():
        kinds[at] = view(resources[at], kinds[stored])
    return {at: kinds[at] for at in resources}


def _kind(resource: Resource) -> Kind:
    return KINDS.get((resource.group, resource.plural), Kind)(resource)
