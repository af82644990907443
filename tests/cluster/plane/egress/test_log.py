"""pods/log, through the node."""

from __future__ import annotations

import pytest

from kvestigate.cluster.plane.egress.relay import Body
from kvestigate.errors import ConnectionFailed
from kvestigate.http.message import Response
from tests.cluster.plane.conftest import Api
from tests.cluster.plane.egress.conftest import PODS, Kubelet, ask


async def test_a_log_comes_from_the_kubelet(api: Api, kubelet: Kubelet) -> None:
    assert await ask(api, f"{PODS}/web/log") == (200, "one\ntwo\n")
    assert kubelet.target == "/containerLogs/default/web/main"
    assert kubelet.caller == "plane"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("container=side&follow=true", "/side?follow=true"),
        (
            "container=main&tailLines=0&timestamps=true&previous=true&limitBytes=9",
            "/main?previous=true&timestamps=true&tailLines=0&limitBytes=9",
        ),
        ("container=main&sinceSeconds=5&follow=false", "/main?sinceSeconds=5"),
        (
            "container=main&sinceTime=2026-01-01T00:00:00Z",
            "/main?sinceTime=2026-01-01T00%3A00%3A00Z",
        ),
    ],
)
async def test_what_the_kubelet_is_asked(
    api: Api, kubelet: Kubelet, query: str, expected: str
) -> None:
    assert (await ask(api, f"{PODS}/pair/log?{query}"))[0] == 200
    assert kubelet.target == f"/containerLogs/default/pair{expected}"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("missing/log", 404, 'pods "missing" not found'),
        ("lost/log", 404, 'pods "gone" not found'),
        ("waiting/log", 204, ""),
        ("web/log?container=zz", 400, "container zz is not valid for pod web"),
        (
            "pair/log",
            400,
            "a container name must be specified for pod pair, choose one of: [main side]",
        ),
        ("web/log?tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            "web/log?tailLines=-1",
            422,
            'PodLogOptions "web" is invalid: tailLines: Invalid value: -1: must be greater than '
            "or equal to 0",
        ),
        (
            "web/log?sinceSeconds=0",
            422,
            'PodLogOptions "web" is invalid: sinceSeconds: Invalid value: 0: must be greater '
            "than 0",
        ),
        (
            "web/log?sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z",
            422,
            'PodLogOptions "web" is invalid: []: Forbidden: at most one of `sinceTime` or '
            "`sinceSeconds` may be specified",
        ),
    ],
)
async def test_there_is_no_log(
    api: Api, kubelet: Kubelet, path: str, status: int, message: str
) -> None:
    assert await ask(api, f"{PODS}/{path}") == (status, message)
    assert kubelet.asked == []


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_the_kubelets_refusal_is_passed_on(api: Api, kubelet: Kubelet, status: int) -> None:
    kubelet.status, kubelet.text = status, 'container "main" in pod "web" is waiting to start\n'

    assert await ask(api, f"{PODS}/web/log") == (status, kubelet.text.strip())


async def test_a_kubelet_that_is_not_there(api: Api) -> None:
    endpoint = {"kubeletEndpoint": {"Port": 1}}
    await api.patch("/api/v1/nodes/node-1/status", {"status": {"daemonEndpoints": endpoint}})

    status, message = await ask(api, f"{PODS}/web/log")

    assert status == 500
    assert message.startswith('Get "https://127.0.0.1:1/containerLogs/default/web/main": ')
    assert "refused the connection" in message


async def test_a_log_is_whatever_the_client_accepts(api: Api) -> None:
    request = api.request("GET", f"{PODS}/web/log", None, {"accept": "text/plain"})

    response = await api.server.handle(request)

    assert isinstance(response, Response)
    assert (response.status, response.headers) == (200, [("content-type", "text/plain")])


async def test_a_log_that_breaks_off_does_not_seem_complete(api: Api, kubelet: Kubelet) -> None:
    kubelet.breaks = True

    with pytest.raises(ConnectionFailed):
        await ask(api, f"{PODS}/web/log")


async def test_a_log_that_nobody_reads_holds_no_connection(api: Api, kubelet: Kubelet) -> None:
    response = await api.server.handle(api.request("GET", f"{PODS}/web/log"))
    assert isinstance(response, Response)
    assert isinstance(response.body, Body)
    await response.body.aclose()

    assert await ask(api, f"{PODS}/web/log") == (200, "one\ntwo\n")
