"""A vLLM server for GPUs that are simulated: the figures of one that has a model loaded.

Its image could do nothing here, as there is no GPU. So a container of it just waits, and its node
answers in its place, at vLLM's port: `/health` and `/metrics`. What the server has to do is said by
the variables `SIMULATE_REQUESTS` (per second; none without it) and `SIMULATE_SERVED` (requests that
were answered before), so that a model can be loaded and idle.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping

from kvestigate.aio.clock import Clock
from kvestigate.cluster.node.hosts.interface import Process, RunKey
from kvestigate.http.message import Request, Response
from kvestigate.http.server import Server, serve

PORT = 8000
SERVES = "KVESTIGATE_SERVES_MODEL"
"""Marks a container of vLLM, with the model that it was told to load."""
_TEXT = [("content-type", "text/plain; version=0.0.4; charset=utf-8")]
_SECONDS_A_REQUEST, _PROMPT_TOKENS, _ANSWER_TOKENS = 2.0, 310, 180
_TOGETHER = 64
"""Requests that are answered at the same time; the others wait."""
_CACHE_SHARE = 0.012
"""Of the cache, for one request."""
_GOODBYE = 1.0


def exposition(model: str, env: Mapping[str, str], seconds: float) -> str:
    """What a server says that has run for so long: PURE."""
    rate = _number(env.get("SIMULATE_REQUESTS"))
    under_way = math.ceil(rate * _SECONDS_A_REQUEST)
    running = min(under_way, _TOGETHER)
    served = math.floor(_number(env.get("SIMULATE_SERVED")) + rate * max(0.0, seconds))
    metrics: list[tuple[str, str, str, float]] = [
        ("num_requests_running", "gauge", "Requests in model execution batches.", running),
        ("num_requests_waiting", "gauge", "Requests waiting.", under_way - running),
        ("kv_cache_usage_perc", "gauge", "KV-cache usage.", round(running * _CACHE_SHARE, 3)),
        ("prompt_tokens_total", "counter", "Prefill tokens.", served * _PROMPT_TOKENS),
        ("generation_tokens_total", "counter", "Generation tokens.", served * _ANSWER_TOKENS),
        ("request_success_total", "counter", "Successfully processed requests.", served),
    ]
    lines: list[str] = []
    for name, kind, says, value in metrics:
        labels = f'engine="0",model_name="{_escaped(model)}"'
        if name == "request_success_total":
            labels += ',finished_reason="stop"'
        lines += (f"# HELP vllm:{name} {says}", f"# TYPE vllm:{name} {kind}")
        lines.append(f"vllm:{name}{{{labels}}} {float(value)}")
    return "\n".join(lines) + "\n"


def _number(text: str | None) -> float:
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and 0 <= value <= 1e9 else 0.0


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class ModelServers:
    """Answers for the vLLM containers of one node, each at an address of its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._servers: dict[RunKey, Server] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def address(self, process: Process) -> tuple[str, int]:
        """Where a container's server answers; it listens from the first question on."""
        if process.key not in self._servers:

            async def handle(request: Request) -> Response:
                return self._answer(request, process)

            server = await serve(handle)
            if process.key in self._servers:  # somebody else was faster
                await server.close(grace=0)
            else:
                self._servers[process.key] = server
                process.ended.add_done_callback(lambda _: self._end(process.key))
        return self._servers[process.key].address

    async def aclose(self) -> None:
        for server in list(self._servers.values()):
            await server.close(grace=_GOODBYE)
        self._servers.clear()
        await asyncio.gather(*self._closing)

    def _end(self, key: RunKey) -> None:
        server = self._servers.pop(key, None)
        if server is not None:
            task = asyncio.ensure_future(server.close(grace=_GOODBYE))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _answer(self, request: Request, process: Process) -> Response:
        if request.path in ("/health", "/ping"):
            return Response(200, list(_TEXT), b"")
        if request.path != "/metrics":
            return Response(404, list(_TEXT), b'{"detail":"Not Found"}')
        age = self._clock.now() - process.started_at
        text = exposition(process.env.get(SERVES, ""), process.env, age)
        return Response(200, list(_TEXT), text.encode())
