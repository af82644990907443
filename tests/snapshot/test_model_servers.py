"""A model server is recognized by its metrics, and its pods are found by ports and annotations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.snapshot.model_servers import Serving, addresses, serving
from tests.snapshot.objects import as_pod, pod

START = datetime(2026, 11, 9, 8, 12, tzinfo=UTC)
VLLM = f"""
vllm:num_requests_running{{model_name="m"}} 0
vllm:num_requests_waiting{{model_name="m"}} 0
vllm:request_success_total{{finished_reason="stop",model_name="m"}} 3
vllm:request_success_total{{finished_reason="length",model_name="m"}} 4
vllm:generation_tokens_total{{model_name="m"}} 900
vllm:kv_cache_usage_perc{{model_name="m"}} 0.25
process_start_time_seconds {START.timestamp()}
"""


@pytest.mark.parametrize(
    ("exposed", "found"),
    [
        (VLLM, Serving("vLLM", 0, 0, 7, 900, 0.25, START)),
        (
            "sglang:num_running_reqs 2\nsglang:num_queue_reqs 1\nsglang:token_usage 0.5\n",
            Serving("SGLang", 2, 1, None, None, 0.5),
        ),
        (
            "tgi_batch_current_size 0\ntgi_queue_size 0\ntgi_request_count 0\n",
            Serving("TGI", 0, 0, 0),
        ),
        (
            'nv_inference_count{model="a"} 5\nnv_inference_count{model="b"} 6\n',
            Serving("Triton", None, None, 11),
        ),
        ("go_goroutines 5\n", None),
        ("", None),
        ("vllm:num_requests_running NaN\n", None),
    ],
)
def test_what_a_server_says(exposed: str, found: Serving | None) -> None:
    assert serving(exposed.encode()) == found


def test_a_server_that_nobody_asked_was_never_used() -> None:
    assert Serving("vLLM", 0, 0, 0).never_used
    assert not Serving("vLLM", 1, 0, 0).never_used
    assert not Serving("vLLM", 0, 0, None).never_used
    assert Serving("vLLM", 0, 2, 9).at_work


def with_ports(*ports: tuple[str, int], **annotations: str) -> Any:
    main = {"name": "m", "ports": [{"name": name, "containerPort": port} for name, port in ports]}
    body = pod("p", main, on="n")
    body["metadata"]["annotations"] = {
        f"prometheus.io/{key}": value for key, value in annotations.items()
    }
    return as_pod(body)


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (with_ports(), []),
        (with_ports(("grpc", 9000)), []),
        (with_ports(("", 8000)), [(8000, "/metrics")]),
        (with_ports(("http", 80), ("metrics", 9100)), [(9100, "/metrics"), (80, "/metrics")]),
        (
            with_ports(("http", 8000), scrape="true", port="8001", path="/m/x"),
            [(8001, "/m/x"), (8000, "/metrics")],
        ),
        (with_ports(scrape="true", port="99999"), []),
        (with_ports(scrape="false", port="8001"), []),
        *(
            (with_ports(scrape="true", port="1", path=path), [(1, "/metrics")])
            for path in ("/../../api/v1/secrets", "/%2e%2e/x", "/m?x=1", "m", "//x", "/a b")
        ),
    ],
    ids=str,
)
def test_where_a_server_may_listen(one: Any, found: list[tuple[int, str]]) -> None:
    assert addresses(one) == found


@given(st.binary())
def test_no_metrics_break_us(exposed: bytes) -> None:
    for text in (exposed, b"vllm:num_requests_running " + exposed):
        serving(text)
