"""Handlers that a spec names: run a command in the container, or call one of its ports."""

from __future__ import annotations

import asyncio
import os
import ssl

from kvestigate import errors
from kvestigate.cluster.node.hosts.interface import LaunchFailed, Process
from kvestigate.cluster.node.hosts.simulated import SimulatedProcess
from kvestigate.cluster.node.pods import grpc_health
from kvestigate.cluster.node.pods.context import NodeContext
from kvestigate.cluster.node.pods.grpc_health import NoHealth, Serving
from kvestigate.cluster.node.spec.pod import (
    Container,
    ExecAction,
    GrpcAction,
    HttpAction,
    LifecycleHandler,
    TcpAction,
)
from kvestigate.http.message import Headers, Request
from kvestigate.http.pool import HttpClient
from kvestigate.http.tls import client_context

_OUTPUT = 10 * 1024
_HOOK_SECONDS = 60.0
_PROBE, _LIFECYCLE = "kube-probe/1.36", "kube-lifecycle/1.36"


class ActionFailed(Exception):
    """A handler did not succeed; the message says what came back."""


class Hooks:
    """Carries out the actions of probes and of postStart and preStop."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    async def run(self, container: Container, process: Process, handler: LifecycleHandler) -> str:
        """What went wrong; empty when nothing did."""
        try:
            if handler.exec is not None:
                await self.execute(process, handler.exec)
            elif handler.http_get is not None:
                # Whatever it answers will do.
                await self._get(container, process, handler.http_get, _HOOK_SECONDS, _LIFECYCLE)
            elif handler.sleep is not None:
                await self._context.clock.sleep(handler.sleep.seconds)
            else:
                return "the hook has none of exec, httpGet and sleep"
        except ActionFailed as failure:
            return str(failure)
        return ""

    async def execute(self, process: Process, action: ExecAction) -> None:
        try:
            session = await self._context.host.enter(
                process, action.command, tty=False, stdin=False
            )
        except LaunchFailed as failure:
            raise ActionFailed(failure.message) from failure
        output = b""
        try:
            while (piece := await session.read()) is not None:
                output = (output + piece[1])[-_OUTPUT:]
            ending = await session.ended
        finally:
            session.kill()  # whoever waits for it no longer, does not leave it running either
            await session.aclose()
        if ending.code:
            raise ActionFailed(
                output.decode("utf-8", "replace").strip() or f"exit code {ending.code}"
            )

    async def fetch(
        self, container: Container, process: Process, action: HttpAction, seconds: float
    ) -> None:
        status = await self._get(container, process, action, seconds, _PROBE)
        if not 200 <= status < 400:
            raise ActionFailed(f"HTTP probe failed with statuscode: {status}")

    async def _get(
        self, container: Container, process: Process, action: HttpAction, seconds: float, agent: str
    ) -> int:
        port = port_number(container, action.port)
        if isinstance(process, SimulatedProcess):
            if _listens(container, port):
                return 200
            at = self._shown(process, action.host, port)
            refused = f"dial tcp {at}: connect: connection refused"
            raise ActionFailed(f'Get "http://{at}{action.path or "/"}": {refused}')
        host, port = await self._context.dial(process, port, host=action.host)
        path, _, query = action.path.partition("?")
        headers = Headers([(header.name, header.value) for header in action.http_headers])
        for name, value in (("user-agent", agent), ("accept", "*/*")):
            if name not in headers:
                headers.add(name, value)
        client = HttpClient(host=host, port=port, tls=_unverified(action.scheme))
        try:
            request = Request("GET", path or "/", query, headers)
            answer = await client.send(request, timeout=seconds)
            status = answer.status
            await answer.aclose()
        except errors.KvestigateError as failure:
            at = self._shown(process, action.host, port_number(container, action.port))
            url = f"{action.scheme.lower() or 'http'}://{at}{action.path or '/'}"
            raise ActionFailed(f'Get "{url}": {_refusal(failure, at)}') from failure
        finally:
            await client.aclose()
        return status

    def _shown(self, process: Process, host: str, port: int) -> str:
        """The address as the spec has it: where that is on this machine says nothing to readers."""
        return f"{host or self._context.addresses.take(process.key.pod_uid)}:{port}"

    async def ask_health(self, process: Process, action: GrpcAction) -> None:
        if isinstance(process, SimulatedProcess):
            return
        host, port = await self._context.dial(process, action.port)
        try:
            health = await grpc_health.check(host, port, action.service)
        except NoHealth as failure:
            raise ActionFailed(f"error: health rpc probe failed: {failure}") from failure
        except OSError as failure:
            # The port of the spec: where that is on this machine says nothing to its author.
            why = f"error: failed to connect service at port {action.port}: {_words(failure)}"
            raise ActionFailed(why) from failure
        if health is not Serving.SERVING:
            raise ActionFailed(f'service unhealthy (responded with "{health.name}")')

    async def connect(self, container: Container, process: Process, action: TcpAction) -> None:
        wanted = port_number(container, action.port)
        if isinstance(process, SimulatedProcess):
            if _listens(container, wanted):
                return
            at = self._shown(process, action.host, wanted)
            raise ActionFailed(f"dial tcp {at}: connect: connection refused")
        try:
            host, port = await self._context.dial(process, wanted, host=action.host)
            _, writer = await asyncio.open_connection(host, port)
        except OSError as failure:
            at = self._shown(process, action.host, wanted)
            raise ActionFailed(f"dial tcp {at}: connect: {_words(failure)}") from failure
        writer.close()


def port_number(container: Container, port: int | str) -> int:
    if isinstance(port, int):
        return port
    for named in container.ports:
        if named.name == port:
            return named.container_port
    if port.isdigit():
        return int(port)
    raise ActionFailed(f'container "{container.name}" has no port named "{port}"')


def _listens(container: Container, port: int) -> bool:
    """Whether a simulated container listens on a port: on those that it declares, or on any."""
    return not container.ports or any(port == each.container_port for each in container.ports)


def _refusal(failure: errors.KvestigateError, at: str) -> str:
    """Why a request failed, as programs in Go would say it."""
    cause = failure.__cause__
    if isinstance(failure, errors.DeadlineExceeded):
        return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    if isinstance(cause, OSError):
        return f"dial tcp {at}: connect: {_words(cause)}"
    return failure.message


def _words(failure: OSError) -> str:
    """`connection refused`, as programs in Go would say it."""
    return os.strerror(failure.errno).lower() if failure.errno else str(failure)


def _unverified(scheme: str) -> ssl.SSLContext | None:
    """Probes trust every certificate, as the kubelet's do."""
    return client_context(insecure=True) if scheme.upper() == "HTTPS" else None
