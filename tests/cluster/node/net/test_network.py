"""Pods have addresses of their own, Services lead to them and names stand for both."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kvestigate.client.api import PODS, Api
from kvestigate.cluster.node.agent.agent import Agent
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.logs import LogQuery
from kvestigate.cluster.node.hosts.seccomp import obstacle
from kvestigate.cluster.node.net.network import SLICES
from kvestigate.cluster.node.net.services import OWNER
from kvestigate.kube import builtins
from tests.cluster.node.conftest import (
    LONG,
    PYTHON,
    MakeHost,
    Object,
    in_phase,
    is_ready,
    lone_agent,
    pod,
    says,
    until,
)

pytestmark = pytest.mark.skipif(bool(obstacle()), reason=obstacle())

SERVICES = builtins.resource("services")

SERVE = """
import socket, sys
server = socket.create_server((sys.argv[3], int(sys.argv[2])))
print("up", flush=True)
while True:
    peer, address = server.accept()
    peer.sendall(f"{sys.argv[1]} {address[0]}".encode())
    peer.close()
"""
ECHO = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", int(sys.argv[2])))
print("up", flush=True)
while True:
    data, peer = server.recvfrom(100)
    server.sendto(data + b" " + sys.argv[1].encode(), peer)
"""
ASK = """
import socket, sys
for place in sys.argv[1:]:
    host, _, port = place.rpartition(":")
    try:
        peer = socket.create_connection((host, int(port)), 10)
        print(peer.recv(100).decode())
    except OSError as failure:
        print(type(failure).__name__)
"""
SEND = """
import socket, sys
host, _, port = sys.argv[1].rpartition(":")
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
peer.settimeout(10)
if sys.argv[2] == "connected":
    peer.connect((host, int(port)))
    peer.send(b"ping")
else:
    peer.sendto(b"ping", (host, int(port)))
print(peer.recv(100).decode())
"""
RESOLVE = """
import socket, sys
for name in sys.argv[1:]:
    try:
        found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
        print(*sorted({one[4][0] for one in found}))
    except OSError as failure:
        print(type(failure).__name__)
"""


def program(code: str, *arguments: object, **more: Any) -> Object:
    return {"command": [PYTHON, "-c", code, *map(str, arguments)], **more}


async def start(agent: Agent, api: Api, made: Object) -> str:
    """The address of a new pod that has said that it is up."""
    await api.create(PODS, made)
    name = made["metadata"]["name"]
    found = await until(api, name, is_ready)
    await says(agent, name, "up")
    address: str = found["status"]["podIP"]
    return address


async def server(
    agent: Agent, api: Api, name: str, *, port: int = 8080, at: str = "", **spec: Any
) -> str:
    return await start(agent, api, pod(name, program(SERVE, name, port, at), **spec))


async def output(agent: Agent, api: Api, name: str, container: Object, **spec: Any) -> list[str]:
    """What a pod says that comes to an end."""
    await api.create(PODS, pod(name, container, restartPolicy="Never", **spec))
    ended = await until(api, name, in_phase("Succeeded", "Failed"))
    (worker,) = [one for one in agent.workers.values() if one.key.name == name]
    log = worker.log("main", previous=False)
    assert log is not None
    said = b"".join([piece async for piece in log.read(LogQuery())]).decode()
    assert ended["status"]["phase"] == "Succeeded", said
    return said.splitlines()


async def ask(agent: Agent, api: Api, *places: str, name: str = "asker") -> list[str]:
    return await output(agent, api, name, program(ASK, *places))


async def service(api: Api, name: str, *addresses: str, **spec: Any) -> str:
    """The cluster address of a Service in front of pods' addresses."""
    ports = spec.pop("ports", [{"name": "main", "port": 80, "targetPort": 8080}])
    target = ports[0] if ports else {}
    not_ready = spec.pop("not_ready", ())
    hostnames = spec.pop("hostnames", {})
    made = await api.create(
        SERVICES,
        {"metadata": {"name": name}, "spec": {"ports": ports, **spec}},
        namespace="default",
    )
    slice_object = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": {OWNER: name}},
        "addressType": "IPv4",
        "ports": [
            {
                "name": target.get("name", ""),
                "port": target.get("targetPort"),
                "protocol": target.get("protocol", "TCP"),
            }
        ],
        "endpoints": [
            {
                "addresses": [ip],
                "conditions": {"ready": ip not in not_ready},
                **({"hostname": hostnames[ip]} if ip in hostnames else {}),
            }
            for ip in addresses
        ],
    }
    await api.create(SLICES, slice_object, namespace="default")
    address: str = made["spec"].get("clusterIP", "")
    return address


# Addresses.


async def test_two_pods_listen_on_one_port_and_both_answer(agent: Agent, api: Api) -> None:
    one, two = await server(agent, api, "one"), await server(agent, api, "two")
    assert one != two
    said = await ask(agent, api, f"{one}:8080", f"{two}:8080", f"{one}:8081")
    client = (await api.get(PODS, "asker"))["status"]["podIP"].replace("10.", "127.", 1)
    assert said == [f"one {client}", f"two {client}", "ConnectionRefusedError"]


WAYS = """
import asyncio, socket, sys, threading
host, port = sys.argv[1], int(sys.argv[2])

async def without_blocking():
    reader, _ = await asyncio.open_connection(host, port)
    return await reader.read(100)

def in_a_thread():
    said = []
    def work():
        said.append(socket.create_connection((host, port)).recv(100))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return said[0]

def over_six():
    peer = socket.socket(socket.AF_INET6)
    peer.connect(("::ffff:" + host, port))
    return peer.recv(100)

def bound_before():
    peer = socket.socket()
    peer.bind(("", 0))
    peer.connect((host, port))
    return peer.recv(100)

def refused_before():
    peer = socket.socket()
    assert peer.connect_ex((host, port + 1)) == 111
    peer.connect((host, port))
    return peer.recv(100)

ways = (in_a_thread, over_six, bound_before, refused_before)
for said in (asyncio.run(without_blocking()), *(way() for way in ways)):
    print(said.decode().split()[0])
"""


async def test_every_kind_of_socket_finds_its_way(agent: Agent, api: Api) -> None:
    ip = await server(agent, api, "web")
    assert await output(agent, api, "asker", program(WAYS, ip, 8080)) == ["web"] * 5


async def test_a_low_port_can_be_had_by_every_user(agent: Agent, api: Api) -> None:
    ip = await server(agent, api, "web", port=80)
    assert (await ask(agent, api, f"{ip}:80"))[0].startswith("web ")


@pytest.mark.parametrize("at", ["", "127.0.0.1", "::"])
async def test_a_pod_reaches_itself_as_localhost(agent: Agent, api: Api, at: str) -> None:
    code = f"""
import socket, threading
six = ":" in "{at}"
family = socket.AF_INET6 if six else socket.AF_INET
server = socket.create_server(("{at}", 9000), family=family, dualstack_ipv6=six)
def answer():
    while True:
        peer = server.accept()[0]
        peer.sendall(b"me")
        peer.close()
threading.Thread(target=answer, daemon=True).start()
for host in ("127.0.0.1", "localhost", socket.gethostbyname("localhost")):
    print(socket.create_connection((host, 9000), 10).recv(10).decode())
"""
    assert await output(agent, api, "self", program(code)) == ["me", "me", "me"]


async def test_a_pod_in_the_machines_network_is_at_its_address(agent: Agent, api: Api) -> None:
    """And reaches pods all the same."""
    ip = await server(agent, api, "web")
    await api.create(
        PODS, pod("asker", program(ASK, f"{ip}:8080"), hostNetwork=True, restartPolicy="Never")
    )
    done = await until(api, "asker", in_phase("Succeeded", "Failed"))
    assert done["status"]["podIP"] == "127.0.0.1"
    await says(agent, "asker", "web 127.0.0.1")


async def test_what_is_run_in_a_pod_has_its_view(agent: Agent, api: Api) -> None:
    ip = await server(agent, api, "web")
    (worker,) = agent.workers.values()
    process = worker.processes["main"]
    argv = (PYTHON, "-c", ASK, f"{ip}:8080", "127.0.0.1:8080")
    session = await agent.host.enter(process, argv, tty=False, stdin=False)
    said = b""
    async with asyncio.timeout(LONG):
        while (piece := await session.read()) is not None:
            said += piece[1]
    await session.aclose()
    assert said.decode().splitlines() == [f"web {ip.replace('10.', '127.', 1)}", "web 127.0.0.1"]


async def test_pods_keep_their_network_when_the_agent_is_another(
    api: Api, make_host: MakeHost
) -> None:
    config = NodeConfig("here", keep_pods=True)
    code = f"""
import sys
print("up", flush=True)
sys.stdin.readline()
sys.argv = ["", sys.stdin.readline().strip()]
exec({ASK!r})
"""
    async with lone_agent(api, make_host("here"), config) as first:
        ip = await server(first, api, "web")
        await start(first, api, pod("asker", program(code, stdin=True), restartPolicy="Never"))
    async with lone_agent(api, make_host("here"), NodeConfig("here")) as second:
        (worker,) = [one for one in second.workers.values() if one.key.name == "asker"]
        worker.processes["main"].write_stdin(f"\n{ip}:8080\n".encode())
        await until(api, "asker", in_phase("Succeeded"))
        await says(second, "asker", "web ")


@pytest.mark.parametrize("probe", ["tcpSocket", "httpGet"])
async def test_probes_reach_the_pods_own_address(agent: Agent, api: Api, probe: str) -> None:
    """Two pods on one port: only the one that listens becomes ready."""
    code = "import http.server as s; s.test(s.SimpleHTTPRequestHandler, port=8080)"
    quick = {probe: {"port": 8080}, "periodSeconds": 1, "failureThreshold": 1}
    await api.create(PODS, pod("web", program(code, readinessProbe=quick)))
    await api.create(PODS, pod("idle", program("input()", stdin=True, readinessProbe=quick)))
    await until(api, "web", is_ready)
    idle = await api.get(PODS, "idle")
    assert not is_ready(idle)


# Services.


async def test_a_service_leads_to_its_ready_pods_in_turn(agent: Agent, api: Api) -> None:
    names = ("a", "b", "c")
    addresses = [await server(agent, api, name) for name in names]
    absent = addresses[0].rpartition(".")[0] + ".250"
    ip = await service(api, "web", *addresses, absent, not_ready=(absent,))
    said = await ask(agent, api, *[f"{ip}:80"] * 6)
    assert sorted(line.split()[0] for line in said) == ["a", "a", "b", "b", "c", "c"]


async def test_a_client_stays_with_its_pod_where_the_service_says_so(
    agent: Agent, api: Api
) -> None:
    addresses = [await server(agent, api, name) for name in ("a", "b")]
    ip = await service(api, "web", *addresses, sessionAffinity="ClientIP")
    said = await ask(agent, api, *[f"{ip}:80"] * 6)
    assert len(set(said)) == 1
    assert said[0][0] in "ab"


async def test_a_service_without_pods_refuses(agent: Agent, api: Api) -> None:
    ip = await service(api, "web")
    assert await ask(agent, api, f"{ip}:80", f"{ip}:81") == ["ConnectionRefusedError"] * 2


@pytest.mark.parametrize("how", ["connected", "addressed"])
async def test_datagrams_go_to_pods_and_services(agent: Agent, api: Api, how: str) -> None:
    ip = await start(agent, api, pod("echo", program(ECHO, "echo", 5353)))
    port = {"name": "main", "port": 53, "targetPort": 5353, "protocol": "UDP"}
    cluster_ip = await service(api, "echo", ip, ports=[port])
    for name, place in (("direct", f"{ip}:5353"), ("through", f"{cluster_ip}:53")):
        assert await output(agent, api, name, program(SEND, place, how)) == ["ping echo"]


# Names.


async def test_names_of_services_and_of_their_pods(agent: Agent, api: Api) -> None:
    ip = await service(api, "web", "10.244.9.2")
    ready, late = "10.244.9.3", "10.244.9.4"
    await service(
        api, "ranks", ready, late, clusterIP="None", not_ready=(late,),
        hostnames={ready: "rank-0", late: "rank-1"},
    )  # fmt: skip
    asked = {
        "web": ip,
        "web.default": ip,
        "web.default.svc": ip,
        "web.default.svc.cluster.local": ip,
        "web.default.svc.cluster.local.": ip,
        "ranks": ready,
        "rank-0.ranks": ready,
        "rank-0.ranks.default.svc.cluster.local": ready,
        "rank-1.ranks": "gaierror",
        "rank-0.web": "gaierror",
        "nobody": "gaierror",
        "10-244-9-2.default.pod.cluster.local": "10.244.9.2",
        "kubernetes.default.svc": "10.0.0.1",
        "localhost": "127.0.0.1",
    }
    said = await output(agent, api, "asker", program(RESOLVE, *asked))
    assert dict(zip(asked, said, strict=True)) == asked


async def test_a_service_is_reached_by_name(agent: Agent, api: Api) -> None:
    ip = await server(agent, api, "one")
    await service(api, "web", ip)
    assert (await ask(agent, api, "web:80"))[0].startswith("one ")


async def test_a_pod_may_have_names_of_its_own(agent: Agent, api: Api) -> None:
    spec = {
        "hostname": "rank-0",
        "subdomain": "ranks",
        "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["db", "db.example"]}],
        "dnsConfig": {"searches": ["example.org"], "options": [{"name": "ndots", "value": "2"}]},
    }
    shown = {"command": ["sh", "-c", "cat /etc/hosts /etc/resolv.conf"]}
    said = await output(agent, api, "named", shown, **spec)
    ip = (await api.get(PODS, "named"))["status"]["podIP"]
    assert f"{ip}\trank-0.ranks.default.svc.cluster.local rank-0" in said
    assert "10.1.2.3\tdb db.example" in said
    assert "nameserver 169.254.20.10" in said
    assert any(
        line.startswith("search default.svc.cluster.local svc.cluster.local cluster.local")
        and line.endswith("example.org")
        for line in said
    )
    assert "options ndots:2" in said
