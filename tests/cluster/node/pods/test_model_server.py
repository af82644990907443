"""vLLM on simulated GPUs: what its metrics say."""

from __future__ import annotations

import pytest

from kvestigate.cluster.node.pods.model_server import exposition
from kvestigate.cluster.node.spec.images import served_model
from kvestigate.snapshot.prometheus import samples

IMAGE = "vllm/vllm-openai:v0.11.0"


def figures(seconds: float, **env: str) -> dict[str, float]:
    said = exposition("m", env, seconds).encode()
    names = ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"]
    names += ["generation_tokens_total", "request_success_total"]
    return {name: next(iter(samples(said, f"vllm:{name}"))).value for name in names}


def test_a_loaded_model_without_requests_is_idle() -> None:
    before, after = (figures(age, SIMULATE_SERVED="1200") for age in (10.0, 9000.0))
    assert before == after
    assert (before["request_success_total"], before["num_requests_running"]) == (1200, 0)


def test_requests_are_counted_and_wait_when_there_are_too_many() -> None:
    before, after = (figures(age, SIMULATE_REQUESTS="50") for age in (10.0, 20.0))
    assert after["request_success_total"] - before["request_success_total"] == 500
    assert (after["num_requests_running"], after["num_requests_waiting"]) == (64, 36)
    assert 0 < after["kv_cache_usage_perc"] <= 1


@pytest.mark.parametrize("rate", ["", "many", "nan", "-3", "1e300"])
def test_an_odd_rate_is_none(rate: str) -> None:
    assert figures(10.0, SIMULATE_REQUESTS=rate)["request_success_total"] == 0


@pytest.mark.parametrize(
    ("args", "model"),
    [
        (["--model", "a/b"], "a/b"),
        (["--port", "8000", "--model=a/b"], "a/b"),
        ([], "facebook/opt-125m"),
    ],
)
def test_the_model_is_the_one_that_was_asked_for(args: list[str], model: str) -> None:
    assert served_model(IMAGE, [], args) == model
    assert served_model(IMAGE, ["sleep"], args) == ""
