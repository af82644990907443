"""The columns of each kind. One list, no import side effects."""

from __future__ import annotations

from kvestigate.plane.kinds.kind import Kind, Object
from kvestigate.plane.tables import (
    endpoints,
    events,
    namespaces,
    nodes,
    persistent_volumes,
    pods,
    quotas,
    replication_controllers,
    scales,
    services,
    simple,
)
from kvestigate.plane.tables.columns import NAME, Cells, Column, Columns


def _creation(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp")]


GENERIC = Columns((NAME, Column("Created At", "date")), _creation, empty_rows=None)
"""Of kinds that have no columns of their own."""

COLUMNS: dict[tuple[str, str], Columns] = {
    ("", "configmaps"): simple.CONFIG_MAPS,
    ("", "endpoints"): endpoints.ENDPOINTS,
    ("", "events"): events.EVENTS,
    ("events.k8s.io", "events"): events.EVENTS,
    ("", "namespaces"): namespaces.NAMESPACES,
    ("", "nodes"): nodes.NODES,
    ("", "persistentvolumeclaims"): persistent_volumes.CLAIMS,
    ("", "persistentvolumes"): persistent_volumes.VOLUMES,
    ("", "pods"): pods.PODS,
    ("", "podtemplates"): replication_controllers.POD_TEMPLATES,
    ("", "replicationcontrollers"): replication_controllers.REPLICATION_CONTROLLERS,
    ("", "resourcequotas"): quotas.RESOURCE_QUOTAS,
    ("", "secrets"): simple.SECRETS,
    ("", "serviceaccounts"): simple.SERVICE_ACCOUNTS,
    ("", "services"): services.SERVICES,
    ("autoscaling", "scales"): scales.SCALES,
}


def columns_of(kind: Kind) -> Columns:
    return COLUMNS.get((kind.resource.group, kind.resource.plural), GENERIC)
