"""exec, attach and port-forward, through the node."""

from __future__ import annotations

import asyncio

import pytest

from kvestigate.http.message import Headers, Request, WebSocket
from kvestigate.http.pool import HttpClient, UpgradeRefused
from kvestigate.http.server import Server
from tests.cluster.plane.conftest import TOKEN, Api
from tests.cluster.plane.egress.conftest import NODE, PODS, Kubelet, ask

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
TUNNEL = "SPDY/3.1+portforward.k8s.io"


async def open_stream(front: Server, path: str, *subprotocols: str) -> WebSocket:
    host, port = front.address
    where, _, query = path.partition("?")
    request = Request("GET", where, query, Headers([("authorization", f"Bearer {TOKEN}")]))
    async with HttpClient(host=host, port=port) as client:
        return await client.upgrade(request, subprotocols, timeout=10)


@pytest.mark.parametrize(
    ("path", "subprotocol", "target"),
    [
        (
            "web/exec?command=sh&command=-c&command=echo+a%26b&stdin=true&stdout=true&tty=true",
            V5,
            "/exec/default/web/main?input=1&output=1&tty=1&command=sh&command=-c&"
            "command=echo+a%26b",
        ),
        (
            "pair/exec?command=ls&container=side&stdout=true&stderr=true",
            V4,
            "/exec/default/pair/side?output=1&error=1&command=ls",
        ),
        ("web/attach?stdout=true", V5, "/attach/default/web/main?output=1"),
        ("web/portforward", TUNNEL, "/portForward/default/web"),
        ("web/portforward?ports=80&ports=81", V4, "/portForward/default/web?port=80%2C81"),
    ],
)
async def test_messages_go_both_ways(
    front: Server, kubelet: Kubelet, path: str, subprotocol: str, target: str
) -> None:
    socket = await open_stream(front, f"{PODS}/{path}", subprotocol, "other")
    try:
        await socket.send(b"\x00hello")

        assert await socket.receive() == b"\x00hello"
        assert socket.subprotocol == subprotocol
    finally:
        await socket.close()
    assert kubelet.target == target
    assert kubelet.caller == "plane"


async def test_the_clients_token_stays_with_us(front: Server, kubelet: Kubelet) -> None:
    socket = await open_stream(front, f"{PODS}/web/exec?command=ls", V5)
    await socket.close()

    assert "authorization" not in kubelet.asked[0].headers


async def test_the_end_of_one_side_is_the_end_of_the_other(front: Server) -> None:
    socket = await open_stream(front, f"{PODS}/web/exec?command=ls", V5)

    await socket.send(b"bye")

    async with asyncio.timeout(10):
        assert await socket.receive() == b"bye"
        assert await socket.receive() is None
    await socket.close()


async def test_the_kubelets_refusal_is_the_answer(front: Server, kubelet: Kubelet) -> None:
    kubelet.status, kubelet.text = 404, "container not found"

    with pytest.raises(UpgradeRefused) as refused:
        await open_stream(front, f"{PODS}/web/exec?command=ls", V5)

    assert (refused.value.status, refused.value.body) == (404, b"container not found")


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("web/exec?command=ls", "/exec/default/web/main?command=ls"),
        ("web/portforward", "/portForward/default/web"),
    ],
)
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ((400, "Upgrade request required"), "Upgrade request required"),
        ((404, 'container not found ("main")'), 'container not found ("main")'),
        ((200, "one"), "Upgrade request required"),
    ],
)
async def test_whoever_asks_for_no_websocket_is_told_what_the_kubelet_finds_wrong(
    api: Api, kubelet: Kubelet, path: str, target: str, said: tuple[int, str], message: str
) -> None:
    """kubectl asks again, for SPDY, when its WebSocket was refused, and shows the second answer."""
    kubelet.status, kubelet.text = said

    spdy = {"connection": "Upgrade", "upgrade": "SPDY/3.1"}
    found = await ask(api, f"{PODS}/{path}", "POST", **spdy)

    assert found == (404 if kubelet.status == 404 else 400, message)
    assert kubelet.target == target


async def test_whoever_asks_for_no_websocket_is_told_that_the_kubelet_is_away(api: Api) -> None:
    nowhere = {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}
    await api.patch(f"/api/v1/nodes/{NODE}/status", {"status": nowhere})

    status, message = await ask(api, f"{PODS}/web/exec?command=ls", "POST")

    assert status == 500
    assert message.startswith("error dialing backend: ")


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("missing/exec?command=ls", 404, 'pods "missing" not found'),
        ("waiting/exec?command=ls", 400, "pod waiting does not have a host assigned"),
        ("waiting/portforward", 400, "pod waiting does not have a host assigned"),
        ("lost/attach", 404, 'pods "gone" not found'),
        (
            "pair/attach",
            400,
            "a container name must be specified for pod pair, choose one of: [main side]",
        ),
        ("web/exec?container=zz", 400, "container zz is not valid for pod web"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_no_stream(
    api: Api, kubelet: Kubelet, method: str, path: str, status: int, message: str
) -> None:
    assert await ask(api, f"{PODS}/{path}", method) == (status, message)
    assert kubelet.asked == []
