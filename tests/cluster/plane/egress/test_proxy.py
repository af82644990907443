"""nodes/proxy, pods/proxy and services/proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest

from kvestigate.cluster.node.api.forwarding import CHANNELS, channels
from kvestigate.cluster.plane.kinds.registry import builtin
from kvestigate.cluster.plane.model import objects
from kvestigate.http.message import Headers, Request, Response, Upgrade
from kvestigate.http.server import serve
from tests.cluster.plane.admission.policies.conftest import register
from tests.cluster.plane.admission.policies.judge import judging
from tests.cluster.plane.conftest import Api
from tests.cluster.plane.egress.conftest import NODE, PODS, Kubelet, ask

SERVICES = "/api/v1/namespaces/default/services"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def _here(port: int) -> tuple[str, int]:
    return "127.0.0.1", port


class Forwarding(Kubelet):
    """A node that forwards ports as our own agent does."""

    async def handle(self, request: Request) -> Response | Upgrade:
        if not request.path.startswith("/portForward/"):
            return await super().handle(request)
        self.forwarded.append(request.path)
        port = int(request.query.removeprefix("port="))
        return Upgrade(lambda socket: channels(socket, _here, [port]), CHANNELS)

    forwarded: ClassVar[list[str]] = []


@pytest.fixture
def kubelet_type() -> type[Kubelet]:
    Forwarding.forwarded.clear()
    return Forwarding


@pytest.fixture
async def pod(api: Api) -> AsyncIterator[Kubelet]:
    """What listens behind the pod `web` and the service `front`; plain HTTP."""
    listening = Kubelet(text="hello")
    async with await serve(listening.handle) as server:
        listening.port = server.address[1]
        status: dict[str, Any] = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
        await api.patch(f"{PODS}/web/status", {"status": status})
        ports = [{"name": "http", "port": 80}]
        made = await api.post(SERVICES, {"metadata": {"name": "front"}, "spec": {"ports": ports}})
        assert made.status == 201, made.body
        yield listening


async def slice_of(api: Api, port: int, *, ready: bool = True, pod: str = "") -> None:
    """Put where no user could: the API takes no loopback endpoints, and tests use no other."""
    endpoints: dict[str, Any] = {
        "metadata": {
            "name": "front-1",
            "namespace": "default",
            "uid": "1",
            "labels": {"kubernetes.io/service-name": "front"},
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": port}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}],
    }
    if pod:
        endpoints["endpoints"][0] |= {"targetRef": {"kind": "Pod", "name": pod}}
    plane = await api.server.planes.open("root")
    kind = builtin()["discovery.k8s.io", "v1", "endpointslices"]
    await plane.write(objects.put(endpoints, kind, expect=0))


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_node_is_its_kubelet(api: Api, kubelet: Kubelet, method: str) -> None:
    path = f"/api/v1/nodes/{NODE}/proxy/stats/summary/?only=cpu"

    assert await ask(api, path, method) == (200, kubelet.text)
    assert kubelet.asked[0].method == method
    assert kubelet.target == "/stats/summary/?only=cpu"


async def test_a_pod_is_reached_through_its_node(api: Api, pod: Kubelet) -> None:
    assert await ask(api, f"{PODS}/web:{pod.port}/proxy/a/b%20c/") == (200, "hello")
    assert pod.target == "/a/b%20c/"
    assert Forwarding.forwarded == ["/portForward/default/web"]


async def test_a_connection_through_the_node_is_kept(api: Api, pod: Kubelet) -> None:
    for _ in range(3):
        assert (await ask(api, f"{PODS}/web:{pod.port}/proxy/"))[0] == 200

    assert (len(pod.asked), len(Forwarding.forwarded)) == (3, 1)


async def test_nothing_listens_in_the_pod(api: Api, pod: Kubelet) -> None:
    status, message = await ask(api, f"{PODS}/web:1/proxy/")

    assert status == 503
    assert message.startswith("error trying to reach service: ")


@pytest.mark.parametrize("name", ["front", "front:80", "front:http", "http:front:http"])
@pytest.mark.parametrize(("behind", "tunnels"), [("", 0), ("web", 1)])
async def test_a_service_is_one_of_its_endpoints(
    api: Api, pod: Kubelet, name: str, behind: str, tunnels: int
) -> None:
    await slice_of(api, pod.port, pod=behind)

    assert await ask(api, f"{SERVICES}/{name}/proxy/x") == (200, "hello")
    assert pod.target == "/x"
    assert len(Forwarding.forwarded) == tunnels


async def test_credentials_and_connection_headers_stay_with_us(api: Api, pod: Kubelet) -> None:
    request = api.request(
        "GET",
        f"{PODS}/web:{pod.port}/proxy/",
        None,
        {"x_mine": "1", "connection": "x-hop", "x_hop": "2"},
    )
    await api.server.handle(request)

    sent = pod.asked[0].headers
    assert sent.get("x-mine") == "1"
    assert "authorization" not in sent
    assert "x-hop" not in sent


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/login?x=1", "{base}/login?x=1"),
        ("http://127.0.0.1:{port}/login", "{base}/login"),
        ("https://example.com/", "https://example.com/"),
        ("//example.com/", "//example.com/"),
    ],
)
async def test_redirects_lead_back_through_us(
    api: Api, pod: Kubelet, location: str, expected: str
) -> None:
    pod.status = 302
    pod.headers = [("location", location.format(port=pod.port))]
    base = f"{PODS}/web:{pod.port}/proxy"

    response = await api.server.handle(api.request("GET", f"{base}/"))

    assert isinstance(response, Response)
    assert Headers(response.headers).get("location") == expected.format(base=base)


async def test_the_root_is_below_a_slash(api: Api, pod: Kubelet) -> None:
    path = f"{PODS}/web:{pod.port}/proxy"

    response = await api.server.handle(api.request("GET", f"{path}?a=b"))

    assert isinstance(response, Response)
    assert (response.status, response.headers) == (301, [("location", f"{path}/?a=b")])


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/api/v1/nodes/zz/proxy/x", 404, 'nodes "zz" not found'),
        (f"{PODS}/zz/proxy/x", 404, 'pods "zz" not found'),
        (f"{SERVICES}/zz/proxy/x", 404, 'services "zz" not found'),
        (f"{SERVICES}/front:81/proxy/x", 503, 'no service port 81 found for service "front"'),
        (f"{SERVICES}/front/proxy/x", 503, 'no endpoints available for service "front"'),
        (f"{PODS}/waiting/proxy/x", 400, "pod waiting does not have a host assigned"),
        (f"{PODS}/web:x/proxy/x", 400, 'invalid port "x"'),
        (f"{PODS}/ftp:web:1/proxy/x", 400, 'invalid proxy target "ftp:web:1"'),
    ],
)
async def test_nothing_to_reach(
    api: Api, pod: Kubelet, path: str, status: int, message: str
) -> None:
    assert await ask(api, path) == (status, message)


async def test_endpoints_that_are_not_ready_do_not_count(api: Api, pod: Kubelet) -> None:
    await slice_of(api, pod.port, ready=False)

    assert (await ask(api, f"{SERVICES}/front/proxy/"))[0] == 503


@pytest.mark.parametrize("behind", ["", "web"])
@pytest.mark.parametrize(("named", "status"), [("front", 201), ("kubernetes", 500)])
async def test_a_webhook_is_asked_behind_its_service(
    api: Api, behind: str, named: str, status: int
) -> None:
    ports = [{"name": "http", "port": 443}]
    await api.post(SERVICES, {"metadata": {"name": "front"}, "spec": {"ports": ports}})
    async with judging() as judge:
        await slice_of(api, judge.port, pod=behind)
        service = {"name": named, "namespace": "default", "path": "/ask"}
        client = {"service": service, "caBundle": judge.ca}
        await register(api, "validating", judge.hook(clientConfig=client))
        made = await api.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert made.status == status, made.body
    assert [each["path"] for each in judge.asked] == ["/ask"] * (status == 201)
    assert bool(Forwarding.forwarded) == (behind == "web" and status == 201)


async def test_a_webhook_behind_a_service_has_to_prove_its_name(api: Api) -> None:
    ports = [{"name": "http", "port": 443}]
    await api.post(SERVICES, {"metadata": {"name": "front"}, "spec": {"ports": ports}})
    async with judging(names=["127.0.0.1"]) as judge:
        await slice_of(api, judge.port)
        client = {"service": {"name": "front", "namespace": "default"}, "caBundle": judge.ca}
        await register(api, "validating", judge.hook(clientConfig=client))
        made = await api.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert made.status == 500
    assert "certificate is not valid for 'front.default.svc'" in made.body["message"]
    assert not judge.asked
