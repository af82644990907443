"""Probing a running container, and what its results add up to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kvestigate.cluster.node.hosts.interface import Process
from kvestigate.cluster.node.pods.context import NodeContext
from kvestigate.cluster.node.pods.hooks import ActionFailed, Hooks
from kvestigate.cluster.node.pods.records import Health
from kvestigate.cluster.node.spec.pod import Container, Probe


@dataclass(slots=True)
class Tally:
    """Results in a row: PURE. The verdict changes when enough say the same."""

    success_threshold: int
    failure_threshold: int
    successes: int = 0
    failures: int = 0

    def observe(self, ok: bool) -> bool | None:
        """The verdict, or None while there is none."""
        if ok:
            self.successes, self.failures = self.successes + 1, 0
            return True if self.successes >= self.success_threshold else None
        self.successes, self.failures = 0, self.failures + 1
        return False if self.failures >= self.failure_threshold else None


def initial_health(container: Container) -> Health:
    """The health before the first probe: good where there is no probe for it."""
    return Health(
        started=container.startup_probe is None,
        ready=container.readiness_probe is None,
        alive=True,
    )


_DECIDES = {
    ("Startup", True): "started",
    ("Startup", False): "alive",
    ("Readiness", True): "ready",
    ("Readiness", False): "ready",
    ("Liveness", True): "alive",
    ("Liveness", False): "alive",
}
"""The field of `Health` that a verdict of a probe is about."""

OnHealth = Callable[[str, Health, str], None]
"""Told the container, its health, and the message of a probe that failed, else an empty one."""


def _late(probe: Probe) -> str:
    """The kubelet's words for a probe that took too long."""
    if probe.exec is None:
        return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    command = " ".join(probe.exec.command)
    return f'command timed out: "{command}" timed out after {probe.timeout_seconds}s'


class Prober:
    """The probes of one run. They end with `stop`."""

    def __init__(
        self,
        context: NodeContext,
        container: Container,
        process: Process,
        tell: OnHealth,
    ) -> None:
        self._context = context
        self._container = container
        self._process = process
        self._tell = tell
        self._hooks = Hooks(context)
        self._task: asyncio.Task[None] | None = None
        self._held = False
        self._health = initial_health(container)

    def start(self) -> None:
        container = self._container
        if container.startup_probe or container.readiness_probe or container.liveness_probe:
            self._task = asyncio.ensure_future(self._run())

    def hold(self) -> None:
        """The container is being stopped: from now on only its readiness is probed."""
        self._held = True

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        container = self._container
        if container.startup_probe is not None:
            await self._repeat("Startup", container.startup_probe)
            if not self._health.started:
                return  # it will be restarted
        async with asyncio.TaskGroup() as group:
            if container.readiness_probe is not None:
                group.create_task(self._repeat("Readiness", container.readiness_probe))
            if container.liveness_probe is not None:
                group.create_task(self._repeat("Liveness", container.liveness_probe))

    async def _repeat(self, kind: str, probe: Probe) -> None:
        """Until a startup probe has a verdict, or a liveness probe has failed."""
        tally = Tally(probe.success_threshold, probe.failure_threshold)
        await self._initial_delay(probe)
        while kind == "Readiness" or not self._held:
            failure = await self._attempt(kind, probe)
            verdict = tally.observe(not failure)
            if verdict is not None:
                field = _DECIDES[kind, verdict]
                self._health = msgspec.structs.replace(self._health, **{field: verdict})
            self._tell(self._container.name, self._health, failure)
            if verdict is not None and (kind == "Startup" or (kind == "Liveness" and not verdict)):
                return
            await self._context.clock.sleep(probe.period_seconds)

    async def _initial_delay(self, probe: Probe) -> None:
        """It counts from the start of the container, not from the end of its startup probe."""
        until = self._process.started_at + probe.initial_delay_seconds
        await self._context.clock.sleep(max(0.0, until - self._context.clock.now()))

    async def _attempt(self, kind: str, probe: Probe) -> str:
        """Why the probe failed; empty when it succeeded."""
        try:
            async with asyncio.timeout(probe.timeout_seconds):
                await self._act(probe)
        except ActionFailed as failure:
            return f"{kind} probe failed: {failure}"
        except TimeoutError:
            return f"{kind} probe failed: {_late(probe)}"
        return ""

    async def _act(self, probe: Probe) -> None:
        container, process = self._container, self._process
        if probe.exec is not None:
            await self._hooks.execute(process, probe.exec)
        elif probe.http_get is not None:
            await self._hooks.fetch(container, process, probe.http_get, probe.timeout_seconds)
        elif probe.tcp_socket is not None:
            await self._hooks.connect(container, process, probe.tcp_socket)
        elif probe.grpc is not None:
            await self._hooks.ask_health(process, probe.grpc)
