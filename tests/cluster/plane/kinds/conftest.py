"""Shorthands for the objects that these tests are about."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.conftest import Api

PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"


def pod(name: str = "a", *, container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "nginx:1", **(container or {})}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


@pytest.fixture
async def bound(api: Api) -> Api:
    """A plane with the pod `a` on a node, running."""
    assert (await api.post(PODS, pod(nodeName="n"))).status == 201
    running = {"status": {"phase": "Running"}}
    assert (await api.patch(f"{PODS}/a/status", running, STRATEGIC)).status == 200
    return api
