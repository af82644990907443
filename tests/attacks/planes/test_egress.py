"""No notation, name, redirect or route leads the server to an address of its own machine."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kvestigate.cluster.plane.egress.addresses import Allowance, is_allowed
from kvestigate.cluster.plane.egress.dialer import AddressRefused, Dialer
from kvestigate.errors import UsageError
from kvestigate.http.message import Headers, Request, Response
from kvestigate.http.server import serve
from tests.attacks.planes.conftest import CANARY, A, Site, opened, options_in
from tests.attacks.planes.test_credentials import node

FORBIDDEN = [
    *("127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.254", "0.0.0.0", "0.1.2.3"),
    *("169.254.0.1", "169.254.169.254", "169.254.170.2", "224.0.0.1", "239.255.255.250"),
    *("255.255.255.255", "240.0.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
]
"""IPv4 addresses of the machine, its link, its cloud, and of nobody."""
FORBIDDEN_6 = [
    *("::", "::1", "fe80::1", "febf::1", "ff02::1", "ff05::2", "fd00:ec2::254", "fd20:ce::254"),
    *("0:0:0:0:0:0:0:1", "::0001", "fe80:0:0:0::a9fe:a9fe", "FE80::1"),
]
ORDINARY = [
    *("10.1.2.3", "172.16.0.1", "192.168.0.7", "8.8.8.8", "100.64.0.1", "fd00::1", "2a00:1450::1"),
    *("::ffff:10.1.2.3", "64:ff9b::8.8.8.8", "2002:0808:0808::1"),
]


def _words(address: str) -> str:
    number = int(ipaddress.IPv4Address(address))
    return f"{number >> 16:x}:{number & 0xFFFF:x}"


def carriers(address: str) -> Iterator[str]:
    """IPv6 addresses that carry an IPv4 address."""
    words, number = _words(address), int(ipaddress.IPv4Address(address))
    inverted = f"{(~number >> 16) & 0xFFFF:x}:{~number & 0xFFFF:x}"
    yield f"::ffff:{address}"
    yield f"::ffff:{words}"
    yield f"0:0:0:0:0:ffff:{words}"
    yield f"::{words}"
    yield f"::ffff:0:{words}"
    yield f"64:ff9b::{words}"
    yield f"64:ff9b:1::{words}"
    yield f"64:ff9b:1:{number >> 16:x}:{(number >> 8) & 0xFF:x}:{(number & 0xFF) << 8:x}::"
    yield f"2002:{words}::1"
    yield f"2001:0:{words}::1"
    yield f"2001:0:808:808:0:0:{inverted}"
    yield f"2a00:1450::5efe:{words}"
    yield f"2a00:1450::200:5efe:{words}"


CARRIED = [carrier for address in FORBIDDEN for carrier in carriers(address)]
TEXTS = [
    *("2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1"),
    *("0x7f.0.0.0x1", "0", "0x0", "00000000", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376"),
    *("localhost", "LOCALHOST", "localhost.", "ip6-localhost", "fe80::1%lo", "::1%lo"),
    *("fe80::1%25lo", "", " ", ".", "..", "127.0.0.1 ", " 127.0.0.1", "127.0.0.1\t", "[::1]"),
    *("127.0.0.1:80", "a\0b", "a" * 300, "é" * 64, "xn--", "127。0。0。1", "①②⑦.0.0.1", "1" * 70),
]
"""What resolvers read as an address of this machine, or must not choke on."""


def test_as_many_cases_as_promised() -> None:
    count = len(FORBIDDEN + FORBIDDEN_6 + CARRIED + TEXTS)
    print(f"{count} addresses")
    assert count >= 250


@pytest.mark.parametrize("address", [*FORBIDDEN, *FORBIDDEN_6, *CARRIED])
async def test_an_address_is_refused_in_every_notation(address: str) -> None:
    assert not is_allowed(ipaddress.ip_address(address), 443, ())
    with pytest.raises(AddressRefused, match="address not allowed"):
        await Dialer().open(address, 443)


@pytest.mark.parametrize("text", TEXTS)
async def test_no_text_becomes_a_connection_to_this_machine(text: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with listener, pytest.raises((AddressRefused, OSError)):
        await Dialer().open(text, port)


@pytest.mark.parametrize("address", ORDINARY)
def test_other_addresses_are_none_of_our_business(address: str) -> None:
    assert is_allowed(ipaddress.ip_address(address), 443, ())


async def test_a_name_is_resolved_once_and_every_address_is_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A resolver of the attacker's: first a good address, then ours; or both at once."""
    answers = [["127.0.0.9"], ["127.0.0.1"], ["127.0.0.9", "169.254.169.254"]]
    asked: list[str] = []

    async def resolver(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, 0)) for a in answers.pop(0)]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver)
    seen = socket.create_server(("127.0.0.9", 0))
    port = seen.getsockname()[1]
    dialer = Dialer([Allowance.parse("127.0.0.9")])
    with seen:
        opened_socket = await dialer.open("evil.example", port)
        assert opened_socket.getpeername() == ("127.0.0.9", port)
        opened_socket.close()
        assert asked == ["evil.example"]
        for _ in range(2):
            with pytest.raises(AddressRefused):
                await dialer.open("evil.example", port)


@pytest.mark.parametrize(
    ("allowance", "allowed"),
    [
        ("127.0.0.0/8", False),
        ("0.0.0.0/0", False),
        ("127.0.0.1", False),
        ("127.0.0.1:{port}", True),
        ("127.0.0.1/32:1", False),
    ],
)
async def test_own_listeners_need_an_allowance_that_names_the_port(
    allowance: str, allowed: bool
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    for dialer in (
        Dialer([Allowance.parse(allowance.format(port=port))]),
        Dialer([Allowance.parse(allowance.format(port=port))], [("localhost", port)]),
    ):
        dialer.protect(port)
        async with asyncio.timeout(10):
            for host in ("127.0.0.1", "::ffff:127.0.0.1"):
                if allowed:
                    (await dialer.open(host, port)).close()
                else:
                    with pytest.raises(AddressRefused):
                        await dialer.open(host, port)
    listener.close()


def own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


async def test_the_servers_port_is_refused_at_every_address_of_the_machine() -> None:
    address = own_address()
    listener = socket.create_server((address, 0))
    port = listener.getsockname()[1]
    dialer = Dialer()
    (await dialer.open(address, port)).close()  # somebody else's port
    dialer.protect(port)
    with pytest.raises(AddressRefused):
        await dialer.open(address, port)
    with pytest.raises(AddressRefused):
        await Dialer([], [(address, port)]).open(f"::ffff:{address}", port)
    listener.close()


@pytest.mark.parametrize(
    "text", ["", "x", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "10.0.0.1/8", "[::1]x", "a:1"]
)
def test_a_wrong_allowance_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="--allow-egress"):
        Allowance.parse(text)


# -- through the API ---------------------------------------------------------------------------


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, list[str]]]:
    """A server of this machine that no tenant may reach, and what it was asked."""
    asked: list[str] = []

    async def handle(request: Request) -> Response:
        asked.append(request.path)
        return Response(200, [("content-type", "text/plain")], CANARY.encode())

    async with await serve(handle) as server:
        yield server.address[1], asked


HOSTS = ["127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::1", "localhost", "0x7f.1"]
NAMESPACE = f"{A}/api/v1/namespaces/default"


@pytest.mark.parametrize("host", HOSTS)
async def test_every_way_to_a_node(site: Site, host: str) -> None:
    async with listening() as (port, asked):
        await node(site, host, port)
        pod = {"spec": {"nodeName": "evil", "containers": [{"name": "c", "image": "i"}]}}
        made = await site.ann.post(f"{NAMESPACE}/pods", {"metadata": {"name": "p"}, **pod})
        assert made.status == 201, made.text
        status = {"podIP": "10.1.1.1", "phase": "Running"}
        await site.ann.patch(f"{NAMESPACE}/pods/p/status", {"status": status})
        upgrade = {
            "connection": "upgrade",
            "upgrade": "websocket",
            "sec_websocket_key": "AAAAAAAAAAAAAAAAAAAAAA==",
            "sec_websocket_version": "13",
            "sec_websocket_protocol": "v5.channel.k8s.io",
        }
        for path in (
            f"{A}/api/v1/nodes/evil/proxy/x",
            f"{A}/api/v1/nodes/evil:{port}/proxy/x",
            f"{A}/api/v1/nodes/http:evil:{port}/proxy/x",
            f"{A}/api/v1/nodes/http:evil:{site.port}/proxy/x",
            f"{A}/api/v1/nodes/https:evil:{site.port}/proxy/api",
            f"{NAMESPACE}/pods/p/log",
            f"{NAMESPACE}/pods/p:80/proxy/x",
            f"{NAMESPACE}/pods/https:p:{site.port}/proxy/x",
            f"{NAMESPACE}/pods/p/exec?command=id",
            f"{NAMESPACE}/pods/p/attach?stdout=1",
            f"{NAMESPACE}/pods/p/portforward?ports=80",
        ):
            for headers in ({}, upgrade):
                reply = await site.ann.get(path, **headers)
                assert reply.status == 400, (path, reply.text)
                assert "address not allowed" in reply.text
                assert CANARY not in reply.text
    assert asked == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::1", "2002:7f00:1::1"]
)
@pytest.mark.parametrize("scheme", ["", "http:", "https:"])
async def test_a_service_whose_endpoint_is_this_machine(site: Site, host: str, scheme: str) -> None:
    async with listening() as (port, asked):
        ports = [{"name": "http", "port": 80}]
        service = {"metadata": {"name": "s"}, "spec": {"ports": ports}}
        assert (await site.ann.post(f"{NAMESPACE}/services", service)).status == 201
        labels = {"kubernetes.io/service-name": "s"}
        endpoints = {
            "metadata": {"name": "s-1", "labels": labels},
            "addressType": "IPv6" if ":" in host else "IPv4",
            "ports": [{"name": "http", "port": port}],
            "endpoints": [{"addresses": [host]}],
        }
        path = f"{A}/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
        made = await site.ann.post(path, endpoints)
        reply = await site.ann.get(f"{NAMESPACE}/services/{scheme}s:http/proxy/x")
        assert 400 <= reply.status < 500 if made.status == 201 else made.status == 422
        assert CANARY not in reply.text
    assert asked == []


@pytest.mark.parametrize(
    "url",
    [
        *("https://127.0.0.1:{port}/x", "https://[::1]:{port}/", "https://localhost:{port}/"),
        *("https://[::ffff:127.0.0.1]:{port}/", "https://0x7f.1:{port}/", "https://0:{port}/"),
        *("https://2130706433:{port}/", "https://[::ffff:a9fe:a9fe]/", "https://169.254.169.254/"),
        *("https://127.0.0.1:{own}/clusters", "https://[fe80::1%25lo]:{port}/", "https://[::]:1/"),
    ],
)
@pytest.mark.parametrize("kind", ["validating", "mutating"])
async def test_a_webhook_of_this_machine(site: Site, url: str, kind: str) -> None:
    async with listening() as (port, asked):
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["*"],
            "resources": ["configmaps"],
        }
        hook = {
            "name": "hook.example.com",
            "clientConfig": {"url": url.format(port=port, own=site.port)},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        path = f"{A}/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
        made = await site.ann.post(path, {"metadata": {"name": "w"}, "webhooks": [hook]})
        if made.status == 201:
            reply = await site.ann.post(f"{NAMESPACE}/configmaps", {"metadata": {"name": "m"}})
            assert reply.status == 400, reply.text
            assert CANARY not in reply.text
        else:
            assert made.status == 422
    assert asked == []


async def test_redirects_of_a_backend_are_handed_on_and_not_followed(tmp_path: Path) -> None:
    places: list[str] = []

    async def handle(request: Request) -> Response:
        return Response(302, [("location", places[0])])

    async with listening() as (port, asked), await serve(handle) as backend:
        places.append(f"http://127.0.0.1:{port}/x")
        allowed = (Allowance.parse(f"127.0.0.1:{backend.address[1]}"),)
        async with opened(options_in(tmp_path, allow_egress=allowed)) as site:
            await node(site, "127.0.0.1", 1)
            path = f"{A}/api/v1/nodes/http:evil:{backend.address[1]}/proxy/x"
            reply = await site.ann.get(path)
    assert reply.status == 302
    assert asked == []


async def test_a_backend_is_told_nothing_that_it_could_believe_or_use(tmp_path: Path) -> None:
    headers: list[Headers] = []

    async def handle(request: Request) -> Response:
        headers.append(request.headers)
        return Response(200)

    async with await serve(handle) as backend:
        allowed = (Allowance.parse(f"127.0.0.1:{backend.address[1]}"),)
        async with opened(options_in(tmp_path, allow_egress=allowed)) as site:
            await node(site, "127.0.0.1", 1)
            path = f"{A}/api/v1/nodes/http:evil:{backend.address[1]}/proxy/x"
            sent = {
                "x_remote_user": "root",
                "x_remote_group": "system:masters",
                "x_remote_extra_scopes": "all",
                "x_remote_uid": "0",
                "impersonate_user": "ann",
                "proxy_authorization": "Basic eA==",
                "sec_websocket_protocol": "base64url.bearer.authorization.k8s.io.YW5u",
                "x_kept": "yes",
            }
            assert (await site.ann.get(path, **sent)).status == 200
    names = {name for name, _ in headers[0]}
    assert "x-kept" in names
    assert not names & {name.replace("_", "-") for name in sent if name != "x_kept"}
    assert "authorization" not in names


async def test_a_little_gzip_of_a_backend_keeps_nobody_waiting(tmp_path: Path) -> None:
    size = 5_000_000
    bomb = gzip.compress(bytes(size))

    async def handle(request: Request) -> Response:
        return Response(200, [("content-encoding", "gzip")], bomb)

    async with await serve(handle) as backend:
        allowed = (Allowance.parse(f"127.0.0.1:{backend.address[1]}"),)
        async with opened(options_in(tmp_path, allow_egress=allowed)) as site:
            await node(site, "127.0.0.1", 1)
            path = f"{A}/api/v1/nodes/http:evil:{backend.address[1]}/proxy/x"
            attack = asyncio.create_task(site.ann.get(path))
            turns = 0
            while not attack.done():
                await asyncio.sleep(0)
                turns += 1
            assert len((await attack).text) == size
    assert turns > size / 100_000


@pytest.mark.parametrize("status", [101, 199, 600, 999])
async def test_a_backend_does_not_take_over_the_clients_connection(
    tmp_path: Path, status: int
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 %d X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhi" % status)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as backend:
        port = backend.sockets[0].getsockname()[1]
        allowed = (Allowance.parse(f"127.0.0.1:{port}"),)
        async with opened(options_in(tmp_path, allow_egress=allowed)) as site:
            await node(site, "127.0.0.1", 1)
            reply = await site.ann.get(f"{A}/api/v1/nodes/http:evil:{port}/proxy/x")
            assert reply.status == 503
            assert (await site.ann.get(f"{A}/version")).status == 200


async def test_an_aggregated_api_of_a_tenant_is_never_called(site: Site) -> None:
    async with listening() as (port, asked):
        ports = [{"port": port}]
        spec = {"ports": ports, "type": "ExternalName", "externalName": "localhost"}
        await site.ann.post(f"{NAMESPACE}/services", {"metadata": {"name": "s"}, "spec": spec})
        service = {"namespace": "default", "name": "s", "port": port}
        api_service = {
            "metadata": {"name": "v1.evil.example"},
            "spec": {
                "group": "evil.example",
                "version": "v1",
                "service": service,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
            },
        }
        made = await site.ann.post(f"{A}/apis/apiregistration.k8s.io/v1/apiservices", api_service)
        assert made.status == 201, made.text
        reply = await site.ann.get(f"{A}/apis/evil.example/v1/things")
        assert 400 <= reply.status < 500
        assert (await site.ann.get(f"{NAMESPACE}/services/s:{port}/proxy/x")).status == 503
    assert asked == []


async def test_a_webhook_that_the_operator_allows(tmp_path: Path) -> None:
    from tests.cluster.plane.admission.policies.judge import judging

    async with judging() as judge:
        allowed = (Allowance.parse(f"127.0.0.1:{judge.port}"),)
        async with opened(options_in(tmp_path, allow_egress=allowed)) as site:
            path = f"{A}/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
            hook = {"metadata": {"name": "w"}, "webhooks": [judge.hook()]}
            assert (await site.ann.post(path, hook)).status == 201
            reply = await site.ann.post(f"{NAMESPACE}/configmaps", {"metadata": {"name": "m"}})
            assert reply.status == 201, reply.text
        assert len(judge.asked) == 1
