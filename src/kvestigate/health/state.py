"""What an object is supposed to do and what it does, in one sentence. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kvestigate.health.cluster import Cluster, condition
from kvestigate.health.model import Subject
from kvestigate.kube.views.meta import Condition
from kvestigate.render.human import counted
from kvestigate.reports import network
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import is_ready

UNKNOWN = "its state could not be read"


def state_of(cluster: Cluster, subject: Subject) -> str:
    """`3 replicas are wanted, 1 is ready`"""
    item = cluster.object(subject)
    if item is None:
        return UNKNOWN
    told = _STATES.get(subject.kind)
    return told(cluster, item) if told is not None else _by_conditions(item)


def _replicated(cluster: Cluster, workload: Any) -> str:
    ready = workload.status.ready_replicas
    return f"{counted(workload.spec.replicas, 'replica')} wanted, {ready} ready"


def _daemon_set(cluster: Cluster, workload: Any) -> str:
    status = workload.status
    return f"{counted(status.desired_number_scheduled, 'pod')} wanted, {status.number_ready} ready"


def _job(cluster: Cluster, job: Any) -> str:
    wanted = job.spec.completions if job.spec.completions is not None else 1
    status = job.status
    counts = f"{status.succeeded} succeeded, {status.failed} failed, {status.active} active"
    return f"{counted(wanted, 'completion')} wanted; pods: {counts}"


def _cron_job(cluster: Cluster, cron_job: Any) -> str:
    last = cron_job.status.last_schedule_time
    ran = f"last started at {last:%Y-%m-%d %H:%M} UTC" if last else "never started"
    suspended = ", suspended" if cron_job.spec.suspend else ""
    return f"schedule {cron_job.spec.schedule!r}{suspended}; {ran}"


def _pod(cluster: Cluster, pod: Any) -> str:
    statuses = pod.status.container_statuses
    ready = sum(status.ready for status in statuses)
    restarts = sum(status.restart_count for status in pod.status.all_statuses)
    where = f" on node {pod.spec.node_name}" if pod.spec.node_name else ", on no node"
    phase = "Terminating" if pod.metadata.deletion_timestamp else pod.status.phase or "Pending"
    return (
        f"{phase}{where}; {ready} of {counted(len(pod.spec.containers), 'container')} ready, "
        f"{counted(restarts, 'restart')}"
    )


def _service(cluster: Cluster, service: Any) -> str:
    if not cluster.knows(listings.ENDPOINT_SLICES):
        return "its endpoints could not be listed"
    key = (service.metadata.namespace, service.metadata.name)
    ready, others = network.count_endpoints(cluster.of(listings.ENDPOINT_SLICES))
    return f"{ready[key]} ready endpoints, {others[key]} not ready"


def _claim(cluster: Cluster, claim: Any) -> str:
    bound = f" to {claim.spec.volume_name}" if claim.status.phase == "Bound" else ""
    asked = claim.spec.resources.requests.get("storage", "an unknown size")
    return f"{claim.status.phase or 'Pending'}{bound}; {asked} requested"


def _node(cluster: Cluster, node: Any) -> str:
    ready = "Ready" if is_ready(node) else "not Ready"
    return f"{ready}, cordoned" if node.spec.unschedulable else ready


def _namespace(cluster: Cluster, namespace: Any) -> str:
    phase = str(namespace.status.phase or "Active")
    return f"{phase} since {_since(namespace)}" if phase == "Terminating" else phase


def _since(item: Any) -> str:
    moment = item.metadata.deletion_timestamp
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment is not None else "an unknown time"


def _autoscaler(cluster: Cluster, autoscaler: Any) -> str:
    status, spec = autoscaler.status, autoscaler.spec
    return (
        f"{status.current_replicas} replicas, {status.desired_replicas} desired, "
        f"{spec.min_replicas} to {spec.max_replicas} allowed"
    )


def _ingress(cluster: Cluster, ingress: Any) -> str:
    paths = sum(len(rule.http.paths) for rule in ingress.spec.rules)
    return f"{counted(paths, 'path')} of class {ingress.spec.ingress_class_name or '(none)'}"


def _by_conditions(item: Any) -> str:
    """Of kinds that say how they are in the standard way."""
    status = getattr(item, "status", None)
    conditions: Iterable[Condition] = getattr(status, "conditions", ())
    for name in ("Ready", "Available", "Established", "Approved"):
        found = condition(conditions, name)
        if found is not None:
            return f"{name} is {found.status}" + (f": {found.message}" if found.message else "")
    return "it exists"


_STATES: dict[str, Callable[[Cluster, Any], str]] = {
    "Deployment": _replicated,
    "StatefulSet": _replicated,
    "ReplicaSet": _replicated,
    "ReplicationController": _replicated,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
    "Pod": _pod,
    "Service": _service,
    "PersistentVolumeClaim": _claim,
    "Node": _node,
    "Namespace": _namespace,
    "HorizontalPodAutoscaler": _autoscaler,
    "Ingress": _ingress,
}
