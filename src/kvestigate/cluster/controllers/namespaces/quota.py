"""ResourceQuotas: what a namespace uses of what it may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvestigate.client.cache import Change, Key
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import CLAIMS, PODS, QUOTAS, SERVICES
from kvestigate.cluster.controllers.objects import (
    ResourceQuota,
    ResourceQuotaStatus,
    ScopeTerm,
)
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.kube.quantities import ZERO, Quantity, parse
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.network import Service
from kvestigate.kube.views.pods import Container, Pod
from kvestigate.kube.views.storage import PersistentVolumeClaim

Amounts = dict[str, Quantity]
_Read = Callable[[Container], Mapping[str, str]]
_CLASS_SUFFIX = ".storageclass.storage.k8s.io/"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a namespace holds."""

    pods: Sequence[Pod] = ()
    claims: Sequence[PersistentVolumeClaim] = ()
    services: Sequence[Service] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """Objects by `plural` or `plural.group`."""


def decide(quota: ResourceQuota, usage: Usage) -> ResourceQuotaStatus:
    terms = [*(ScopeTerm(scope, "Exists") for scope in quota.spec.scopes)]
    terms += quota.spec.scope_selector.match_expressions
    living = [pod for pod in usage.pods if not pod.finished]
    chosen = [pod for pod in living if all(_in_scope(pod, term) for term in terms)]
    used = {name: str(_used(name, chosen, usage)) for name in quota.spec.hard}
    return ResourceQuotaStatus(hard=dict(quota.spec.hard), used=used)


def _used(name: str, pods: Sequence[Pod], usage: Usage) -> Quantity:
    if name == "pods":
        return parse(len(pods))
    if name == "count/pods":
        return parse(usage.counts.get("pods", 0))
    if name in ("persistentvolumeclaims", "requests.storage"):
        return _storage(name, usage.claims)
    if _CLASS_SUFFIX in name:
        storage_class, _, counted = name.partition(_CLASS_SUFFIX)
        own = [claim for claim in usage.claims if claim.spec.storage_class_name == storage_class]
        return _storage(counted, own)
    if name.startswith("services"):
        return parse(_services(name, usage.services))
    if name.startswith("count/"):
        return parse(usage.counts.get(name.removeprefix("count/"), 0))
    if name in usage.counts or name in ("secrets", "configmaps", "replicationcontrollers"):
        return parse(usage.counts.get(name, 0))
    return _compute(name, pods)


def _storage(name: str, claims: Sequence[PersistentVolumeClaim]) -> Quantity:
    if name != "requests.storage":
        return parse(len(claims))
    total = ZERO
    for claim in claims:
        total += parse(claim.spec.resources.requests.get("storage", "0"))
    return total


def _services(name: str, services: Sequence[Service]) -> int:
    if name == "services.loadbalancers":
        return sum(service.spec.type == "LoadBalancer" for service in services)
    if name == "services.nodeports":
        own = [service for service in services if service.spec.type in ("NodePort", "LoadBalancer")]
        return sum(len(service.spec.ports) for service in own)
    return len(services)


def _compute(name: str, pods: Sequence[Pod]) -> Quantity:
    read = _limits if name.startswith("limits.") else _requests
    resource = name.removeprefix("limits.").removeprefix("requests.")
    total = ZERO
    for pod in pods:
        total += read(pod).get(resource, ZERO)
    return total


# What a pod asks for in all: containers beside each other, init containers in turn.


def _requests(pod: Pod) -> Amounts:
    whole = {} if pod.spec.resources is None else pod.spec.resources.requests
    return _added(
        _total(pod, lambda container: container.resources.requests, whole), pod.spec.overhead
    )


def _limits(pod: Pod) -> Amounts:
    whole = {} if pod.spec.resources is None else pod.spec.resources.limits
    total = _total(pod, lambda item: item.resources.limits, whole)
    # A pod without a limit stays without one.
    return _added(total, {name: item for name, item in pod.spec.overhead.items() if name in total})


def _is_shared(resource: str) -> bool:
    """Whether the containers of a pod can have it from one pool."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _total(pod: Pod, read: _Read, stated: Mapping[str, str]) -> Amounts:
    running: Amounts = {}
    for container in pod.spec.containers:
        running = _added(running, read(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            sidecars = _added(sidecars, read(container))
            now = sidecars
        else:
            now = _added(sidecars, read(container))
        peak = {name: max(peak.get(name, ZERO), now.get(name, ZERO)) for name in {*peak, *now}}
    whole = _sum(running, sidecars)
    whole = {name: max(whole.get(name, ZERO), peak.get(name, ZERO)) for name in {*whole, *peak}}
    return whole | {name: parse(value) for name, value in stated.items() if _is_shared(name)}


def _added(amounts: Amounts, more: Mapping[str, str]) -> Amounts:
    return _sum(amounts, {name: parse(value) for name, value in more.items()})


def _sum(left: Amounts, right: Amounts) -> Amounts:
    return {
        name: left.get(name, ZERO) + right.get(name, ZERO)
        for name in dict.fromkeys((*left, *right))
    }


def _in_scope(pod: Pod, term: ScopeTerm) -> bool:
    scope = term.scope_name
    if scope in ("Terminating", "NotTerminating"):
        return (pod.spec.active_deadline_seconds is not None) == (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        plain = not _requests(pod) and not _limits(pod)
        return plain == (scope == "BestEffort")
    if scope == "PriorityClass":
        return _among(pod.spec.priority_class_name, term)
    return False


def _among(value: str, term: ScopeTerm) -> bool:
    if term.operator == "In":
        return value in term.values
    if term.operator == "NotIn":
        return value not in term.values
    return bool(value) == (term.operator == "Exists")


class QuotaController(Reconciler[ResourceQuota]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, QUOTAS)
        self._pods = context.cache(PODS)
        self._claims = context.cache(CLAIMS)
        self._services = context.cache(SERVICES)
        self._inventory = context.inventory()
        self._inventory.subscribe(self._note)

    def _note(self, resource: Resource, change: Change[Any]) -> None:
        if resource.namespaced and _matters(resource, change):
            for key in self._quotas_beside(change.key):
                self._context.queue.add(key)

    def _quotas_beside(self, key: Key) -> Iterable[Key]:
        for quota in self._objects.find(owners.NAMESPACE, key.namespace):
            yield key.sibling(quota.metadata.name)

    async def _reconcile(self, quota: ResourceQuota) -> float | None:
        if quota.metadata.deletion_timestamp is not None:
            return None
        namespace = quota.metadata.namespace
        content = self._inventory.in_namespace(namespace)
        usage = Usage(
            pods=self._pods.find(owners.NAMESPACE, namespace),
            claims=self._claims.find(owners.NAMESPACE, namespace),
            services=self._services.find(owners.NAMESPACE, namespace),
            counts={resource.qualified: len(items) for resource, items in content.items()},
        )
        # Admission raises the same numbers when it lets something in.
        await self._context.put_status(QUOTAS, quota, decide(quota, usage), only_this_version=True)
        return None


def _matters(resource: Resource, change: Change[Any]) -> bool:
    """Whether a change can change a count or a sum."""
    if change.old is None or change.new is None:
        return True
    if resource.plural == "pods" and not resource.group:
        return bool(change.old.finished != change.new.finished)
    return resource.plural in ("services", "persistentvolumeclaims")
