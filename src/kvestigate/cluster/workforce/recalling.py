"""Runs of simulated containers, recalled from what the pods' statuses tell of them."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.aio.clock import Clock
from kvestigate.cluster.node.agent.feed import Feed
from kvestigate.cluster.node.hosts.interface import Ending, Launch, Process, RunKey
from kvestigate.cluster.node.hosts.simulated import SimulatedHost
from kvestigate.cluster.node.pods.preparing import recorded_launch
from kvestigate.cluster.node.spec import environment
from kvestigate.cluster.node.spec.environment import MissingReference, Surroundings
from kvestigate.cluster.node.spec.pod import Container, Pod
from kvestigate.cluster.node.volumes.sources import Sources
from kvestigate.kube.views.network import Service
from kvestigate.kube.views.pods import ContainerStatus, TerminatedState


class RecalledHost(SimulatedHost):
    """A simulated host that finds in the pods' statuses what an earlier one ran."""

    def __init__(self, clock: Clock, feed: Feed, sources: Sources, node: str) -> None:
        super().__init__(clock)
        self._pods = feed
        self._sources = sources
        self._node = node

    async def adopt(self) -> list[Process]:
        processes: list[Process] = []
        for pod in self._pods.pods_of(self._node):
            if pod.finished:
                continue
            for status in statuses(pod):
                container = pod.container(status.name)
                if container is None:
                    continue
                launch = await launch_of(
                    pod, container, status.restart_count, self._sources, tuple(self._pods.services)
                )
                process = self._run(launch, status)
                if process is not None:
                    processes.append(process)
        return processes

    def _run(self, launch: Launch, status: ContainerStatus) -> Process | None:
        state = status.state
        # What waits to be restarted shows in the last state how it ended.
        over = state.terminated or (state.waiting and status.last_state.terminated)
        if state.running is not None and state.running.started_at is not None:
            return self.resume(launch, state.running.started_at.timestamp())
        return ended_run(self, launch, over) if over else None


def statuses(pod: Pod) -> Sequence[ContainerStatus]:
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def ended_run(host: SimulatedHost, launch: Launch, over: TerminatedState) -> Process | None:
    if over.started_at is None or over.finished_at is None:
        return None
    ended = Ending(over.exit_code, at=over.finished_at.timestamp())
    return host.resume(launch, over.started_at.timestamp(), ended)


async def launch_of(
    pod: Pod, container: Container, attempt: int, sources: Sources, services: tuple[Service, ...]
) -> Launch:
    """The launch of a run, from what it refers to now."""
    key = RunKey(pod.metadata.uid, container.name, attempt)
    data = {
        reference: (await sources.data(pod, reference))[0]
        for reference in sorted(environment.references(container))
    }
    around = Surroundings(
        data=data,
        binary={},
        services=services,
        host_ip="",
        pod_ip=pod.status.pod_ip,
        allocatable={},
        api=None,
    )
    try:
        env = environment.environment(pod, container, around)
    except MissingReference:
        env = {variable.name: variable.value for variable in container.env}
    return recorded_launch(pod, container, key, env)
