"""The contenders of the collect bench: `python -m bench.collectors NAME KUBECONFIG N`.

Each follows Deployments, writes a line for every event to standard output, and after N events
says on standard error what that took.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Tally:
    """Counts events; remembers how much memory there was after the first tenth."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.events = 0
        self._early = 0

    def add(self, count: int) -> bool:
        """Whether all have come."""
        self.events += count
        if not self._early and self.events * 10 >= self.wanted:
            self._early = _resident()
        return self.events >= self.wanted

    def report(self) -> None:
        figures = [self.events, time.process_time(), self._early, _resident()]
        print(json.dumps(figures), file=sys.stderr)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def official(kubeconfig: str, tally: Tally) -> None:
    """As the official client's documentation shows it, with pydantic models."""
    from kvestigate.collect.model import ContainerSpec, InferenceRequest

    # By name, because its annotations make every field of every object optional.
    importlib.import_module("kubernetes.config").load_kube_config(kubeconfig)
    api = importlib.import_module("kubernetes.client").AppsV1Api()
    watch = importlib.import_module("kubernetes.watch").Watch()
    for event in watch.stream(api.list_deployment_for_all_namespaces):
        found = event["object"]
        spec = found.spec.template.spec
        request = InferenceRequest(
            namespace=found.metadata.namespace,
            workload_kind="Deployment",
            workload_name=found.metadata.name,
            labels=found.metadata.labels or {},
            annotations=found.metadata.annotations or {},
            containers=[
                ContainerSpec(
                    name=container.name,
                    image=container.image,
                    command=container.command,
                    args=container.args,
                    req_cpu_mcpu=_millis((container.resources.requests or {}).get("cpu")),
                    req_mem_mib=_mib((container.resources.requests or {}).get("memory")),
                    lim_cpu_mcpu=_millis((container.resources.limits or {}).get("cpu")),
                    lim_mem_mib=_mib((container.resources.limits or {}).get("memory")),
                )
                for container in spec.containers
            ],
            init_container_count=len(spec.init_containers or []),
            sidecar_count=0,
            node_type=None,
            id=f"{found.metadata.uid}@{found.metadata.resource_version}",
            effective_cpu_mcpu=0,
            effective_mem_mib=0,
            gpu_fraction=None,
            runtime_class=spec.runtime_class_name,
            gpu_count=sum(
                int((container.resources.limits or {}).get("nvidia.com/gpu", 0))
                for container in spec.containers
            ),
            event=event["type"],
        )
        print(request.model_dump_json())
        if tally.add(1):
            watch.stop()


def _millis(text: Any) -> int | None:
    if text is None:
        return None
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def _mib(text: Any) -> int | None:
    if text is None:
        return None
    for suffix, factor in (("Gi", 1024), ("Mi", 1)):
        if text.endswith(suffix):
            return int(text[: -len(suffix)]) * factor
    return int(text) // (1024 * 1024)


def kvestigate(kubeconfig: str, tally: Tally) -> None:
    """The program's own parts, with a sink that counts what it writes."""
    asyncio.run(_kvestigate(kubeconfig, tally))


async def _kvestigate(kubeconfig: str, tally: Tally) -> None:
    from kvestigate.client.access import AccessOptions, resolve
    from kvestigate.collect.kinds import chosen
    from kvestigate.collect.run import CollectOptions, Outlet, collect
    from kvestigate.collect.sinks.files import StdoutSink

    stop = asyncio.Event()

    class Counting(StdoutSink):
        async def send(self, lines: Sequence[bytes]) -> None:
            await super().send(lines)
            if tally.add(len(lines)):
                stop.set()

    access = resolve(AccessOptions(kubeconfig=kubeconfig), {}, None)
    options = CollectOptions(chosen(["Deployment"]))
    await collect(access, options, [Outlet(Counting())], stop, lambda line: None)


COLLECTORS = {"kvestigate": kvestigate, "official": official}


def main() -> None:
    name, kubeconfig, wanted = sys.argv[1:]
    tally = Tally(int(wanted))
    COLLECTORS[name](kubeconfig, tally)
    tally.report()


if __name__ == "__main__":
    main()
