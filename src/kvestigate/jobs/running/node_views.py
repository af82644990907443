"""The state of each node of a task, from its job and its pod. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kvestigate.jobs.answers import NodeView, State, stamp
from kvestigate.jobs.running.explain import pod_causes
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.placement import GPU
from kvestigate.jobs.tasks.statuses import TaskJob, node_index, node_state
from kvestigate.kube.views.pods import Pod

_PHASES = {
    State.PENDING: "Pending",
    State.RUNNING: "Running",
    State.COMPLETED: "Succeeded",
    State.FAILED: "Failed",
}


def node_views(jobs: Sequence[TaskJob], pods: Sequence[Pod]) -> tuple[NodeView, ...]:
    by_node = {node_index(pod): pod for pod in sorted(pods, key=_created)}
    return tuple(_view(job, by_node.get(node_index(job))) for job in sorted(jobs, key=node_index))


def _view(job: TaskJob, pod: Pod | None) -> NodeView:
    state = node_state(job)
    noted = job.metadata.annotations.get(labels.REASON, "")
    if pod is None:
        return NodeView(node_index(job), _PHASES[state], "", 0, "", "", noted)
    phase = pod.status.phase if state is State.PENDING and pod.status.phase else _PHASES[state]
    began, over = _times(pod)
    causes = [cause for cause, _ in pod_causes(pod)]
    return NodeView(
        index=node_index(job),
        phase=phase,
        machine=pod.spec.node_name,
        gpus=sum(
            int(container.resources.limits.get(GPU, "0")) for container in pod.spec.containers
        ),
        started_at=stamp(began),
        ended_at=stamp(over),
        reason=noted or "; ".join(causes),
    )


def _times(pod: Pod) -> tuple[datetime | None, datetime | None]:
    for status in pod.status.container_statuses:
        if status.state.running is not None:
            return status.state.running.started_at, None
        if status.state.terminated is not None:
            return status.state.terminated.started_at, status.state.terminated.finished_at
    return None, None


def _created(pod: Pod) -> str:
    return stamp(pod.metadata.creation_timestamp)
