"""What model servers say of their work: vLLM, TGI, Triton and SGLang.

A loaded model keeps its GPU's memory and may use no SM for a while, or look busy by polling. Its
server counts requests. Its metrics are read through the API server, which needs the permission to
get `pods/proxy`; only pods that hold GPUs are asked, and only on ports that they declare.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

from kvestigate.client.api import Api
from kvestigate.errors import Forbidden, KvestigateError
from kvestigate.snapshot.pods import Pod
from kvestigate.snapshot.prometheus import samples

_TOGETHER = 16
_PATIENCE = 5.0
_MOST_PODS = 500
_MOST_PORTS = 3
_PORTS = {8000: "vLLM", 8002: "Triton", 30000: "SGLang", 8080: "TGI", 80: "TGI", 3000: "TGI"}
"""Where the servers listen unless they are told otherwise."""
_NAMES = ("metrics", "http-metrics", "prometheus", "http", "api")
_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9._-]+)+")
_SCRAPED, _PORT, _PATH = (f"prometheus.io/{word}" for word in ("scrape", "port", "path"))


@dataclass(frozen=True, slots=True)
class _Engine:
    name: str
    running: str
    waiting: str
    requests: tuple[str, ...]
    """Counters of finished requests, in order of preference."""
    tokens: str = ""
    cache: tuple[str, ...] = ()


ENGINES = (
    _Engine(
        "vLLM",
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        ("vllm:request_success_total", "vllm:e2e_request_latency_seconds_count"),
        "vllm:generation_tokens_total",
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    ),
    _Engine(
        "SGLang",
        "sglang:num_running_reqs",
        "sglang:num_queue_reqs",
        ("sglang:num_requests_total", "sglang:e2e_request_latency_seconds_count"),
        "sglang:generation_tokens_total",
        ("sglang:token_usage",),
    ),
    _Engine(
        "TGI",
        "tgi_batch_current_size",
        "tgi_queue_size",
        ("tgi_request_count", "tgi_request_success"),
        "tgi_request_generated_tokens_sum",
    ),
    _Engine(
        "Triton",
        "",
        "nv_inference_pending_request_count",
        ("nv_inference_request_success", "nv_inference_count"),
    ),
)


@dataclass(frozen=True, slots=True)
class Serving:
    """The work of one model server at one moment; None: not told."""

    engine: str
    running: int | None
    """Requests that are being answered."""
    waiting: int | None
    requests: int | None
    """Requests that were answered since the server started."""
    tokens: int | None = None
    """Tokens that were generated since the server started."""
    cache: float | None = None
    """The used share of the cache, from 0 to 1."""
    started: datetime | None = None

    @property
    def at_work(self) -> bool:
        return bool(self.running or self.waiting)

    @property
    def never_used(self) -> bool:
        """Nobody has asked since the server started."""
        return self.requests == 0 and not self.at_work


def serving(exposed: bytes) -> Serving | None:
    """PURE. What the metrics of a model server say; None if they are of something else."""
    for engine in ENGINES:
        known = [_total(exposed, name) for name in engine.requests]
        running = _total(exposed, engine.running) if engine.running else None
        waiting = _total(exposed, engine.waiting)
        if running is None and waiting is None and not any(it is not None for it in known):
            continue
        cache = (_total(exposed, name) for name in engine.cache)
        started = _total(exposed, "process_start_time_seconds")
        return Serving(
            engine.name,
            _whole(running),
            _whole(waiting),
            _whole(next((count for count in known if count is not None), None)),
            _whole(_total(exposed, engine.tokens) if engine.tokens else None),
            next((share for share in cache if share is not None), None),
            _moment(started),
        )
    return None


def _total(exposed: bytes, metric: str) -> float | None:
    """The sum over models and reasons; None if the metric is not there or is no number."""
    values = [sample.value for sample in samples(exposed, metric)]
    total = sum(values)
    return total if values and isfinite(total) and total >= 0 else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _moment(seconds: float | None) -> datetime | None:
    if not seconds or seconds > 32_503_680_000:  # the year 3000: not a time
        return None
    return datetime.fromtimestamp(seconds, UTC)


def addresses(pod: Pod) -> list[tuple[int, str]]:
    """PURE. Port and path of what may be a model server, the most likely first."""
    annotations = pod.metadata.annotations
    path = annotations.get(_PATH, "")
    # Whoever writes the annotation must not choose another path of the API server.
    path = path if _PLAIN_PATH.fullmatch(path) and ".." not in path else "/metrics"
    written = annotations.get(_PORT, "")
    found: list[tuple[int, str]] = []
    if annotations.get(_SCRAPED) == "true" and written.isascii() and written.isdigit():
        found.append((int(written), path))
    ports = [port for container in pod.spec.containers for port in container.ports]
    named = [port for name in _NAMES for port in ports if port.name == name]
    usual = [port for port in ports if port.container_port in _PORTS]
    found += [(port.container_port, "/metrics") for port in (*named, *usual)]
    return [place for place in dict.fromkeys(found) if 0 < place[0] < 65536][:_MOST_PORTS]


async def ask(api: Api, pods: Iterable[Pod]) -> Mapping[tuple[str, str], Serving]:
    """(namespace, name) -> the work of the model servers among the pods.

    Raises Forbidden if pods may not be asked.
    """
    room = asyncio.Semaphore(_TOGETHER)
    asked = [pod for pod in pods if pod.status.phase == "Running" and addresses(pod)][:_MOST_PODS]

    async def one(pod: Pod) -> Serving | None:
        async with room:
            for port, path in addresses(pod):
                meta = pod.metadata
                where = f"/api/v1/namespaces/{meta.namespace}/pods/{meta.name}:{port}/proxy{path}"
                try:
                    answer = await api.request("GET", where, accept="text/plain", timeout=_PATIENCE)
                except Forbidden:
                    raise
                except KvestigateError:
                    continue
                if (work := serving(answer)) is not None:
                    return work
        return None

    answers = await asyncio.gather(*map(one, asked))
    return {
        (pod.metadata.namespace, pod.metadata.name): work
        for pod, work in zip(asked, answers, strict=True)
        if work is not None
    }
