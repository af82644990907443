"""Which kinds differ from the generic one. One list, no import side effects."""

from __future__ import annotations

from functools import cache

from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.plane.kinds.controller_revisions import ControllerRevisionKind
from kvestigate.plane.kinds.cronjobs import CronJobKind
from kvestigate.plane.kinds.daemonsets import DaemonSetKind
from kvestigate.plane.kinds.deployments import DeploymentKind
from kvestigate.plane.kinds.jobs import JobKind
from kvestigate.plane.kinds.kind import Kind
from kvestigate.plane.kinds.namespaces import NamespaceKind
from kvestigate.plane.kinds.pods import PodKind
from kvestigate.plane.kinds.replicasets import ReplicaSetKind
from kvestigate.plane.kinds.services import ServiceKind
from kvestigate.plane.kinds.statefulsets import StatefulSetKind
from kvestigate.plane.kinds.view import View

Address = tuple[str, str, str]
"""(group, version, plural)"""

KINDS: dict[tuple[str, str], type[Kind]] = {
    ("apps", "controllerrevisions"): ControllerRevisionKind,
    ("apps", "daemonsets"): DaemonSetKind,
    ("apps", "deployments"): DeploymentKind,
    ("apps", "replicasets"): ReplicaSetKind,
    ("apps", "statefulsets"): StatefulSetKind,
    ("batch", "cronjobs"): CronJobKind,
    ("batch", "jobs"): JobKind,
    ("", "namespaces"): NamespaceKind,
    ("", "pods"): PodKind,
    ("", "services"): ServiceKind,
}

VIEWS: dict[Address, tuple[type[View], Address]] = {}
"""Versions that are kept as another, and as which."""


@cache
def builtin() -> dict[Address, Kind]:
    """Every built-in kind by its address."""
    resources = {(it.group, it.version, it.plural): it for it in builtins.registry()}
    kinds = {at: _kind(resource) for at, resource in resources.items() if at not in VIEWS}
    for at, (view, stored) in VIEWS.items():
        kinds[at] = view(resources[at], kinds[stored])
    return {at: kinds[at] for at in resources}


def _kind(resource: Resource) -> Kind:
    return KINDS.get((resource.group, resource.plural), Kind)(resource)
