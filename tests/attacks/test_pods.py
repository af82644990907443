"""A pod with thousands of alike parts is judged without comparing each with each."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.attacks.conftest import Api

PODS = "/api/v1/namespaces/default/pods"
MANY = 20_000
PORTS = [{"containerPort": 80} for _ in range(MANY)]
HOST_PORTS = [{"containerPort": 80, "hostPort": number + 1} for number in range(MANY)]
ITEMS = [{"key": "a", "path": "b/c"} for _ in range(MANY)]
PATHS = [{"key": "a", "path": f"b/{number}"} for number in range(MANY)]


def mapped(items: list[dict[str, str]]) -> dict[str, Any]:
    return {"volumes": [{"name": "v", "configMap": {"name": "m", "items": items}}]}


@pytest.mark.parametrize(
    ("container", "spec"),
    [
        ({"ports": PORTS}, {}),
        ({"ports": HOST_PORTS}, {}),
        ({}, mapped(ITEMS)),
        ({}, mapped(PATHS)),
    ],
    ids=["ports", "host ports", "items", "paths"],
)
async def test_advice_takes_no_longer_than_validation(
    api: Api, container: dict[str, Any], spec: dict[str, Any]
) -> None:
    containers = [{"name": "main", "image": "nginx:1", **container}]
    pod = {"metadata": {"name": "a"}, "spec": {"containers": containers, **spec}}
    begun = time.process_time()
    answer = await api.post(PODS, pod)
    assert answer.status == 201
    assert time.process_time() - begun < 3  # comparing all pairs takes minutes
