"""Whatever a client does in one plane, another neither changes nor shows."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.cluster.plane.conftest import Api
from tests.cluster.plane.tenancy.environment.conftest import MAPS
from tests.cluster.plane.tenancy.environment.test_checkpoints import contents

SECRET = "of-the-neighbour"
ROUNDS = 1500

_PATHS = (
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/kept",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/secrets/kept",
    "/api/v1/namespaces/default/pods",
    "/api/v1/configmaps",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/snapshot",
    "/fork",
    "/checkpoints",
    "/checkpoints/start",
    "/restore",
    "/diff?from=checkpoint:start",
    "/events",
    "/step",
    "/../../beta/control-plane/snapshot",
    "/%2e%2e/%2e%2e/beta/control-plane/snapshot",
    "//clusters/beta/control-plane/snapshot",
    "/version",
)
_BODIES: tuple[Any, ...] = (
    None,
    {},
    b"\xff",
    b"{",
    {"metadata": {"name": "kept"}, "data": {"k": "v"}},
    {"metadata": {"generateName": "x-"}},
    {"name": "start", "replace": True},
    {"checkpoint": "start"},
    {"count": 2},
    {"untilIdle": True},
)


async def test_a_fuzzed_plane_never_shows_in_its_neighbour(api: Api) -> None:
    fuzzed, quiet = (
        Api(api.server, f"/clusters/{name}/control-plane") for name in ("alpha", "beta")
    )
    await quiet.post(MAPS, {"metadata": {"name": "kept"}, "data": {"k": SECRET}})
    await fuzzed.post(MAPS, {"metadata": {"name": "own"}})
    revision = (await quiet.get("/snapshot")).body["resourceVersion"]
    before = await contents(quiet)
    random = Random(11)

    for _ in range(ROUNDS):
        method = random.choice(("GET", "POST", "PUT", "PATCH", "DELETE"))
        answer = await fuzzed.call(method, random.choice(_PATHS), random.choice(_BODIES))
        assert "could not finish" not in str(answer.body)
        assert SECRET not in str(answer.body)

    assert await contents(quiet) == before
    assert (await quiet.get("/snapshot")).body["resourceVersion"] == revision
    assert (await quiet.get("/checkpoints")).body["items"] == []
