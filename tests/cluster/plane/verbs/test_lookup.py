"""Groups that something beside the plane makes up."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.verbs.lookup import Aggregated
from kvestigate.http.message import Response
from kvestigate.kube.resources import Resource
from tests.cluster.plane.conftest import JANE, Api

WEATHER = Resource("sky.example", "v1", "forecasts", "Forecast", verbs=("get", "list"))
SERVICE = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1.sky.example"},
    "spec": {
        "group": "sky.example",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 1,
    },
}
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
PATH = "/apis/sky.example/v1/namespaces/default/forecasts/today"


async def _tell(call: Call) -> Response:
    return answer.json_value({"of": call.info.name, "for": call.user.name})


def add(api: Api) -> None:
    api.server.aggregation.serve([Aggregated(Kind(WEATHER), {"get": _tell, "list": _tell})])


async def _groups(api: Api) -> list[str]:
    found = await api.get("/apis")
    return [group["name"] for group in found.body["groups"]]


async def test_the_group_is_there_while_its_apiservice_is(api: Api) -> None:
    add(api)
    assert (await api.get(PATH)).status == 404
    assert "sky.example" not in await _groups(api)
    await api.post(SERVICES, SERVICE)
    assert (await api.get(PATH)).body == {"of": "today", "for": "admin"}
    assert "sky.example" in await _groups(api)
    await api.delete(f"{SERVICES}/v1.sky.example")
    assert (await api.get(PATH)).status == 404
    assert "sky.example" not in await _groups(api)


async def test_an_apiservice_alone_serves_nothing(api: Api) -> None:
    await api.post(SERVICES, SERVICE)
    assert (await api.get(PATH)).status == 404


async def test_another_plane_does_not_get_it_by_naming_it(api: Api) -> None:
    add(api)
    other = Api(api.server, "/clusters/other/control-plane")
    await other.post(SERVICES, SERVICE)
    assert (await other.get(PATH)).status == 404


async def test_discovery_tells_its_resources(api: Api) -> None:
    add(api)
    await api.post(SERVICES, SERVICE)
    listed = (await api.get("/apis/sky.example/v1")).body["resources"]
    assert [(it["name"], it["kind"], it["verbs"]) for it in listed] == [
        ("forecasts", "Forecast", ["get", "list"])
    ]
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups: list[Any] = (await api.get("/apis", accept=aggregated)).body["items"]
    assert "sky.example" in [group["metadata"]["name"] for group in groups]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_only_what_it_answers_is_allowed(api: Api, method: str) -> None:
    add(api)
    await api.post(SERVICES, SERVICE)
    path = PATH.rpartition("/")[0] if method == "POST" else PATH
    assert (await api.call(method, path, {})).status == 405


async def test_who_may_not_is_refused(guarded: Api) -> None:
    add(guarded)
    await guarded.post(SERVICES, SERVICE)
    assert (await guarded.get(PATH, **JANE)).status == 403
    assert (await guarded.get(PATH)).status == 200
