"""What a node's containers use, in the two forms that metrics-server and others read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from kvestigate.aio.clock import Clock
from kvestigate.client.cache import Key
from kvestigate.cluster.node.hosts.interface import Host, Process, Usage
from kvestigate.cluster.node.hosts.logs import Log
from kvestigate.cluster.node.pods.records import ContainerRecord
from kvestigate.cluster.node.spec.pod import Pod
from kvestigate.kube.times import text


class PodOnNode(Protocol):
    """What the kubelet's API tells of a pod: a `PodWorker`, or what stands for one."""

    pod: Pod
    key: Key
    started_at: float
    processes: dict[str, Process]

    @property
    def records(self) -> Mapping[str, ContainerRecord]: ...

    def log(self, container: str, *, previous: bool) -> Log | None: ...


class Metrics:
    """Usage of one node, measured when it is asked for."""

    def __init__(
        self, node: str, host: Host, clock: Clock, workers: Mapping[str, PodOnNode]
    ) -> None:
        self._node = node
        self._host = host
        self._clock = clock
        self._workers = workers
        self._before: dict[str, tuple[float, float]] = {}
        """(time of the last measurement, CPU seconds at that time), by the id of the run."""

    def summary(self) -> dict[str, Any]:
        """`/stats/summary`"""
        now = self._clock.now()
        pods = []
        cpu = memory = 0
        for worker in self._workers.values():
            containers = [
                self._container(process, usage, now) for process, usage in self._usages(worker)
            ]
            if not containers:
                continue
            meta = worker.pod.metadata
            used = sum(container["cpu"]["usageNanoCores"] for container in containers)
            held = sum(container["memory"]["workingSetBytes"] for container in containers)
            cpu, memory = cpu + used, memory + held
            pods.append(
                {
                    "podRef": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
                    "startTime": text(worker.started_at),
                    "containers": containers,
                    "cpu": {"time": text(now), "usageNanoCores": used},
                    "memory": {"time": text(now), "workingSetBytes": held},
                }
            )
        node = {
            "nodeName": self._node,
            "startTime": text(now),
            "cpu": {"time": text(now), "usageNanoCores": cpu},
            "memory": {"time": text(now), "workingSetBytes": memory},
        }
        return {"node": node, "pods": pods}

    def exposition(self) -> str:
        """`/metrics/resource`"""
        now = int(self._clock.now() * 1000)
        cpu: list[str] = []
        memory: list[str] = []
        starts: list[str] = []
        pod_cpu: list[str] = []
        pod_memory: list[str] = []
        totals = [0.0, 0]
        for worker in self._workers.values():
            meta = worker.pod.metadata
            sums = [0.0, 0]
            for process, usage in self._usages(worker):
                labels = (
                    f'container="{process.key.container}",namespace="{meta.namespace}",'
                    f'pod="{meta.name}"'
                )
                cpu.append(f"{{{labels}}} {usage.cpu_seconds} {now}")
                memory.append(f"{{{labels}}} {usage.memory_bytes} {now}")
                starts.append(f"{{{labels}}} {process.started_at}")
                sums = [sums[0] + usage.cpu_seconds, sums[1] + usage.memory_bytes]
            where = f'namespace="{meta.namespace}",pod="{meta.name}"'
            pod_cpu.append(f"{{{where}}} {sums[0]} {now}")
            pod_memory.append(f"{{{where}}} {sums[1]} {now}")
            totals = [totals[0] + sums[0], totals[1] + sums[1]]
        families = [
            ("container_cpu_usage_seconds_total", "counter", cpu),
            ("container_memory_working_set_bytes", "gauge", memory),
            ("container_start_time_seconds", "gauge", starts),
            ("pod_cpu_usage_seconds_total", "counter", pod_cpu),
            ("pod_memory_working_set_bytes", "gauge", pod_memory),
            ("node_cpu_usage_seconds_total", "counter", [f" {totals[0]} {now}"]),
            ("node_memory_working_set_bytes", "gauge", [f" {totals[1]} {now}"]),
            ("resource_scrape_error", "gauge", [" 0"]),
        ]
        return "".join(_family(*family) for family in families)

    def _usages(self, worker: PodOnNode) -> Iterator[tuple[Process, Usage]]:
        for process in worker.processes.values():
            if not process.ended.done():
                yield process, self._host.usage(process)

    def _container(self, process: Process, usage: Usage, now: float) -> dict[str, Any]:
        then, seconds = self._before.get(process.key.id, (process.started_at, 0.0))
        elapsed = max(now - then, 0.001)
        self._before[process.key.id] = (now, usage.cpu_seconds)
        return {
            "name": process.key.container,
            "startTime": text(process.started_at),
            "cpu": {
                "time": text(now),
                "usageNanoCores": int(max(usage.cpu_seconds - seconds, 0.0) / elapsed * 1e9),
                "usageCoreNanoSeconds": int(usage.cpu_seconds * 1e9),
            },
            "memory": {
                "time": text(now),
                "workingSetBytes": usage.memory_bytes,
                "usageBytes": usage.memory_bytes,
                "rssBytes": usage.memory_bytes,
            },
        }


def _family(name: str, kind: str, samples: list[str]) -> str:
    lines = [f"# TYPE {name} {kind}", *(f"{name}{sample}" for sample in samples)]
    return "\n".join(lines) + "\n"
