"""Collects the objects and events of one task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.errors import Forbidden
from kvestigate.jobs.running.explain import Evidence
from kvestigate.jobs.running.keeping import JOBS
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.statuses import TaskJob, node_index, pod_selector, task_status
from kvestigate.jobs.volumes.claims import CLAIMS
from kvestigate.kube import builtins
from kvestigate.kube.requests import amounts
from kvestigate.kube.views.core import Event, Node
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.storage import PersistentVolumeClaim
from kvestigate.kube.views.workloads import Job

EVENTS = builtins.resource("events")
NODES = builtins.resource("nodes")


async def evidence(api: Api, jobs: Sequence[TaskJob]) -> Evidence:
    """About the one task that all `jobs` belong to."""
    task = task_status(jobs)
    selector = f"{labels.TASK_ID}={task.task_id}"
    pods = await api.list(PODS, Selection(api.namespace, labels=pod_selector(jobs)), type=Pod)
    whole = await api.list(JOBS, Selection(api.namespace, labels=selector), type=Job)
    mounted = {
        volume.persistent_volume_claim.claim_name
        for job in whole.items
        for volume in job.spec.template.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    claims: list[PersistentVolumeClaim] = []
    if mounted:
        every_claim = await api.list(CLAIMS, Selection(api.namespace), type=PersistentVolumeClaim)
        claims = [claim for claim in every_claim.items if claim.metadata.name in mounted]
    events: list[Event] = []
    for name in [*(job.metadata.name for job in jobs), *sorted(mounted)]:
        selection = Selection(api.namespace, fields=f"involvedObject.name={name}")
        events += (await api.list(EVENTS, selection, type=Event)).items
    return Evidence(
        task,
        sorted(jobs, key=node_index),
        sorted(((node_index(pod), pod) for pod in pods.items), key=lambda pair: pair[0]),
        claims,
        events,
        await _largest(api) if any(map(_waits_for_a_node, pods.items)) else {},
    )


def _waits_for_a_node(pod: Pod) -> bool:
    return any(
        condition.type == "PodScheduled" and condition.status == "False"
        for condition in pod.status.conditions
    )


async def _largest(api: Api) -> Mapping[str, int]:
    """The largest allocatable amount of each resource on a node; empty if nodes are forbidden."""
    try:
        nodes: Iterable[Node] = (await api.list(NODES, type=Node)).items
    except Forbidden:
        return {}
    most: dict[str, int] = {}
    for node in nodes:
        for name, amount in amounts(node.status.allocatable).items():
            most[name] = max(amount, most.get(name, 0))
    return most
