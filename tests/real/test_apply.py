"""Random histories leave the same managers of fields on a plane as on kube-apiserver."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from tests.differential.comparing import differences, listed
from tests.differential.running import run
from tests.differential.server import RealServer, plane_server
from tests.real.applying import TOPICS, history
from tests.upstream.cluster import UpstreamCluster

SEEDS = range(10)

# What admission adds to pods is not what this is about.
_ADMITTED = ("tolerations", "priority", "preemptionPolicy")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("topic", sorted(TOPICS))
async def test_the_same_history_has_the_same_managers(
    topic: str, seed: int, kubernetes: UpstreamCluster
) -> None:
    script = history(topic, seed)
    context = ssl.create_default_context(cafile=str(kubernetes.ca_file))
    real = await run(script, RealServer(kubernetes.port, context))
    async with plane_server() as server:
        ours = await run(script, server)
    found = differences(script, *([_comparable(each) for each in side] for side in (real, ours)))
    if found:
        pytest.fail(listed(found), pytrace=False)


def _comparable(exchange: dict[str, Any]) -> dict[str, Any]:
    """An answer in an order that does not depend on seconds and Go's maps."""
    body = exchange.get("body")
    if exchange["status"] == 422 or not isinstance(body, dict):
        return {"status": exchange["status"]}
    if entries := body.get("metadata", {}).get("managedFields"):
        entries.sort(key=lambda entry: [str(entry.get(key)) for key in _IDENTITY])
    if causes := (body.get("details") or {}).get("causes"):
        causes.sort(key=str)
    if body.get("kind") == "Pod":
        for field in _ADMITTED:
            body["spec"].pop(field, None)
    return exchange


_IDENTITY = ("operation", "manager", "apiVersion", "subresource")
