"""The kubelet's HTTP API: what an API server asks a node for on behalf of its clients."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from kvestigate.aio.clock import Clock
from kvestigate.cluster.node.api import channels, forwarding
from kvestigate.cluster.node.api.metrics import Metrics, PodOnNode
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.interface import Host, Process, Session
from kvestigate.cluster.node.hosts.logs import LogQuery
from kvestigate.cluster.node.pods.records import Stage
from kvestigate.http import handshake
from kvestigate.http.message import Request, Response, Upgrade, WebSocket

_JSON = [("content-type", "application/json")]
_TEXT = [("content-type", "text/plain")]

Answer = Response | Upgrade


class Refused(Exception):
    """What cannot be answered: a status and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class RequestInfo:
    request: Request
    params: Mapping[str, str]
    pairs: list[tuple[str, str]]

    def flag(self, name: str) -> bool:
        return self.params.get(name, "").lower() in ("1", "true")

    def number(self, name: str) -> int | None:
        value = self.params.get(name, "")
        if not value:
            return None
        try:
            return int(value)
        except ValueError:
            raise Refused(400, f'{name}: "{value}" is not a number') from None


class KubeletApi:
    """Answers for one node. `handle` is a `http.message.Handler`."""

    def __init__(
        self,
        config: NodeConfig,
        host: Host,
        clock: Clock,
        workers: Mapping[str, PodOnNode],
        dial: Callable[[Process, int], Awaitable[tuple[str, int]]],
    ) -> None:
        """`dial` tells where a port of a container is reached from here."""
        self._config = config
        self._host = host
        self._clock = clock
        self._workers = workers
        self._dial = dial
        self._metrics = Metrics(config.name, host, clock, workers)

    async def handle(self, request: Request) -> Answer:
        if not self._admits(request):
            return Response(401, list(_TEXT), b"Unauthorized")
        pairs = parse_qsl(request.query, keep_blank_values=True)
        info = RequestInfo(request, dict(pairs), pairs)
        word, *rest = [unquote(part) for part in request.path.strip("/").split("/")]
        try:
            answer = self._routes().get(word)
            if answer is None:
                raise Refused(404, "404 page not found")
            return await answer(info, rest)
        except Refused as refusal:
            return Response(refusal.status, list(_TEXT), refusal.message.encode())

    def _admits(self, request: Request) -> bool:
        config = self._config
        if config.client_ca is None and not config.token:
            return True
        if config.client_ca is not None and request.peer.certificate is not None:
            return True
        scheme, _, token = request.headers.get("authorization").partition(" ")
        return (
            bool(config.token)
            and scheme.lower() == "bearer"
            and hmac.compare_digest(token.encode(), config.token.encode())
        )

    def _routes(self) -> dict[str, Callable[[RequestInfo, list[str]], Awaitable[Answer]]]:
        return {
            "healthz": self._healthz,
            "pods": self._pods,
            "runningpods": self._running,
            "stats": self._stats,
            "metrics": self._metrics_text,
            "containerLogs": self._logs,
            "exec": self._exec,
            "attach": self._attach,
            "portForward": self._forward,
        }

    # The node.

    async def _healthz(self, info: RequestInfo, rest: list[str]) -> Answer:
        return Response(200, list(_TEXT), b"ok")

    async def _pods(self, info: RequestInfo, rest: list[str]) -> Answer:
        return _pod_list([worker.pod for worker in self._workers.values()])

    async def _running(self, info: RequestInfo, rest: list[str]) -> Answer:
        running = [
            worker.pod
            for worker in self._workers.values()
            if any(record.running for record in worker.records.values())
        ]
        return _pod_list(running)

    async def _stats(self, info: RequestInfo, rest: list[str]) -> Answer:
        if rest != ["summary"]:
            raise Refused(404, "404 page not found")
        return Response(200, list(_JSON), msgspec.json.encode(self._metrics.summary()))

    async def _metrics_text(self, info: RequestInfo, rest: list[str]) -> Answer:
        if rest not in ([], ["resource"]):
            raise Refused(404, "404 page not found")
        kind = [("content-type", "text/plain; version=0.0.4; charset=utf-8")]
        return Response(200, kind, self._metrics.exposition().encode())

    # Containers.

    async def _logs(self, info: RequestInfo, rest: list[str]) -> Answer:
        worker, name = self._container(rest)
        previous = info.flag("previous")
        log = worker.log(name, previous=previous)
        pod = worker.pod.metadata.name
        if log is None and previous:
            raise Refused(400, f'previous terminated container "{name}" in pod "{pod}" not found')
        if log is None:
            reason = _waiting_reason(worker, name)
            raise Refused(400, f'container "{name}" in pod "{pod}" is waiting to start: {reason}')
        return Response(200, list(_TEXT), log.read(self._log_query(info)), compress=False)

    def _log_query(self, info: RequestInfo) -> LogQuery:
        since: float | None = None
        seconds = info.number("sinceSeconds")
        if seconds is not None:
            since = self._clock.now() - seconds
        elif info.params.get("sinceTime"):
            since = _time(info.params["sinceTime"])
        return LogQuery(
            follow=info.flag("follow"),
            timestamps=info.flag("timestamps"),
            tail=info.number("tailLines"),
            since=since,
            limit_bytes=info.number("limitBytes"),
            stream={"Stdout": "stdout", "Stderr": "stderr"}.get(info.params.get("stream", ""), ""),
        )

    async def _exec(self, info: RequestInfo, rest: list[str]) -> Answer:
        worker, name = self._container(rest)
        process = self._running_process(worker, name)
        command = tuple(value for key, value in info.pairs if key == "command")
        if not command:
            raise Refused(400, "you must specify at least 1 command")
        tty, stdin = info.flag("tty"), info.flag("input")

        def begin() -> Awaitable[Session]:
            return self._host.enter(process, command, tty=tty, stdin=stdin)

        return _websocket(
            info, channels.PROTOCOLS, lambda socket: channels.run_session(socket, begin)
        )

    async def _attach(self, info: RequestInfo, rest: list[str]) -> Answer:
        worker, name = self._container(rest)
        process = self._running_process(worker, name)
        container = worker.pod.container(name)
        assert container is not None
        return _websocket(
            info,
            channels.PROTOCOLS,
            lambda socket: channels.attach(
                socket,
                process,
                stdin=info.flag("input") and container.stdin,
                once=container.stdin_once,
            ),
        )

    async def _forward(self, info: RequestInfo, rest: list[str]) -> Answer:
        worker = self._worker(rest[:2])
        running = [process for process in worker.processes.values() if not process.ended.done()]
        if not running:
            raise Refused(400, f'pod "{worker.pod.metadata.name}" is not running')
        dial = partial(self._dial, running[0])
        ports = [
            int(number)
            for key, value in info.pairs
            if key in ("port", "ports")
            for number in value.split(",")
            if number.isdigit()
        ]

        async def run(socket: WebSocket) -> None:
            if socket.subprotocol == forwarding.TUNNELLED:
                await forwarding.tunnel(socket, dial)
            else:
                await forwarding.channels(socket, dial, ports)

        return _websocket(info, forwarding.PROTOCOLS, run)

    # Finding.

    def _worker(self, path: list[str]) -> PodOnNode:
        if len(path) < 2:
            raise Refused(404, "404 page not found")
        namespace, name = path[:2]
        for worker in self._workers.values():
            if worker.key == (namespace, name):
                return worker
        raise Refused(404, f'pod "{namespace}/{name}" not found')

    def _container(self, path: list[str]) -> tuple[PodOnNode, str]:
        """`NAMESPACE/POD/CONTAINER`, or with the pod's uid before the container."""
        worker = self._worker(path)
        name = path[-1]
        if len(path) not in (3, 4) or worker.pod.container(name) is None:
            pod = worker.pod.metadata.name
            raise Refused(404, f'container "{name}" not found in pod "{pod}"')
        return worker, name

    def _running_process(self, worker: PodOnNode, name: str) -> Process:
        process = worker.processes.get(name)
        if process is None or process.ended.done():
            raise Refused(404, f'container not found ("{name}")')
        return process


def _websocket(
    info: RequestInfo, protocols: tuple[str, ...], run: Callable[[WebSocket], Awaitable[None]]
) -> Upgrade:
    if not handshake.wants_websocket(info.request):
        raise Refused(400, "Upgrade request required: this node supports only WebSocket")
    offered = handshake.offered_subprotocols(info.request)
    chosen = next((name for name in protocols if name in offered), None)
    if chosen is None:
        raise Refused(400, f"unsupported subprotocols: {', '.join(offered)}")
    return Upgrade(run, chosen)


def _waiting_reason(worker: PodOnNode, name: str) -> str:
    record = worker.records.get(name)
    if record is not None and record.stage is Stage.WAITING and record.waiting is not None:
        return record.waiting.reason
    return "ContainerCreating"


def _pod_list(pods: list[Any]) -> Response:
    body = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods}
    return Response(200, list(_JSON), msgspec.json.encode(body))


def _time(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        raise Refused(400, f'sinceTime: "{text}" is not an RFC 3339 time') from None
