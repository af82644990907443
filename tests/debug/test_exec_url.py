"""Where an exec goes, and how far it gets."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest

from kvestigate.debug.exec_url import ExecUrlOptions, Handshake, collect
from kvestigate.debug.rendering import exec_url_blocks
from kvestigate.errors import NotFound, UsageError
from kvestigate.http.message import Handler, Request, Response, Upgrade, WebSocket
from kvestigate.render.plain import to_text
from tests.debug.conftest import Reach, as_json

POD = {
    "metadata": {"name": "web-0"},
    "spec": {"nodeName": "n1", "containers": [{"name": "app"}, {"name": "proxy"}]},
    "status": {"phase": "Running"},
}
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"

Run = Callable[[WebSocket], Awaitable[None]]


def saying(*messages: bytes) -> Run:
    async def run(socket: WebSocket) -> None:
        for message in messages:
            await socket.send(message)
        await socket.close()

    return run


def pod_server(run: Run, *spoken: str, pod: dict[str, object] | None = None) -> Handler:
    """An API server with one pod, whose exec speaks only some subprotocols."""

    async def handle(request: Request) -> Response | Upgrade:
        if not request.path.endswith("/exec"):
            return as_json(pod or POD)
        offered = request.headers.get("sec-websocket-protocol")
        if offered not in spoken:
            return as_json({"kind": "Status", "reason": "BadRequest", "message": "not that"}, 400)
        return Upgrade(run, offered)

    return handle


SUCCESS = b"\x03" + json.dumps({"status": "Success"}).encode()
FAILURE = b"\x03" + json.dumps({"status": "Failure", "message": "no `true` here"}).encode()


@pytest.mark.parametrize(
    ("run", "spoken", "handshakes"),
    [
        (
            saying(b"\x01hello", SUCCESS),
            (V5, V4),
            [
                Handshake(V5, True, f"101, {V5}; the command `true` succeeded"),
                Handshake(V4, True, f"101, {V4}; the command `true` succeeded"),
            ],
        ),
        (
            saying(FAILURE),
            (V4,),
            [
                Handshake(V5, False, "not that"),
                Handshake(V4, True, f"101, {V4}; the command `true` failed: no `true` here"),
            ],
        ),
        (saying(), (), [Handshake(V5, False, "not that"), Handshake(V4, False, "not that")]),
        (
            saying(),
            (V5,),
            [
                Handshake(V5, True, f"101, {V5}; the connection was closed without an exit status"),
                Handshake(V4, False, "not that"),
            ],
        ),
        (
            saying(b"\x03gone wrong"),
            (V5,),
            [
                Handshake(V5, True, f"101, {V5}; gone wrong"),
                Handshake(V4, False, "not that"),
            ],
        ),
    ],
    ids=["both", "only v4", "neither", "no status", "odd status"],
)
async def test_handshakes(
    reach: Reach, run: Run, spoken: tuple[str, ...], handshakes: list[Handshake]
) -> None:
    report = await collect(await reach(pod_server(run, *spoken)), ExecUrlOptions("web-0"))
    assert list(report.handshakes) == handshakes
    assert report.works is bool(spoken)


async def test_urls_and_where_they_lead(reach: Reach) -> None:
    access = await reach(pod_server(saying(SUCCESS), V5))
    report = await collect(access, ExecUrlOptions("web-0", "proxy"))
    path = (
        "/api/v1/namespaces/shop/pods/web-0/exec"
        "?command=true&container=proxy&stdout=true&stderr=true"
    )
    authority = access.server.authority
    assert report.http_url == f"http://{authority}{path}"
    assert report.websocket_url == f"ws://{authority}{path}"
    assert (report.node, report.phase, report.container) == ("n1", "Running", "proxy")
    shown = to_text(exec_url_blocks(report))
    assert "pod:         shop/web-0\ncontainer:   proxy\nnode:        n1\n" in shown
    assert f"{V4}   no         not that\n" in shown


@pytest.mark.parametrize(
    ("annotations", "container"),
    [
        ({}, "app"),
        ({"kubectl.kubernetes.io/default-container": "proxy"}, "proxy"),
        ({"kubectl.kubernetes.io/default-container": "gone"}, "app"),
    ],
)
async def test_the_default_container_is_that_of_kubectl(
    reach: Reach, annotations: dict[str, str], container: str
) -> None:
    pod = {**POD, "metadata": {"name": "web-0", "annotations": annotations}}
    access = await reach(pod_server(saying(SUCCESS), V5, pod=pod))
    assert (await collect(access, ExecUrlOptions("web-0"))).container == container


async def test_an_unknown_container_is_named(reach: Reach) -> None:
    access = await reach(pod_server(saying()))
    with pytest.raises(UsageError, match="has no container 'sidecar'"):
        await collect(access, ExecUrlOptions("web-0", "sidecar"))


@pytest.mark.parametrize(
    ("pods", "hint"),
    [
        (as_json({"items": [{"metadata": {"name": "web-0"}}]}), "did you mean 'web-0'?"),
        (
            as_json({"items": [{"metadata": {"name": "zzz"}}]}),
            "namespace 'shop' has 1 pod, none with a similar name; try another -n",
        ),
        (as_json({"items": []}), "namespace 'shop' has no pods; try another -n"),
        (as_json({}, 403), None),
    ],
    ids=["near", "far", "none", "forbidden"],
)
async def test_a_missing_pod_comes_with_a_way_out(
    reach: Reach, pods: Response, hint: str | None
) -> None:
    async def handle(request: Request) -> Response:
        if request.path.endswith("/namespaces/shop/pods"):
            return pods
        if request.path.endswith("/pods"):
            return as_json({"items": []})
        status = {"kind": "Status", "reason": "NotFound", "message": "no", "details": {"name": "x"}}
        return as_json(status, 404)

    with pytest.raises(NotFound) as caught:
        await collect(await reach(handle), ExecUrlOptions("web0"))
    assert caught.value.hint == hint
