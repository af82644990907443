"""Where calls go, by who makes them."""

from __future__ import annotations

import pytest

from kvestigate.cluster.node.net.routing import TCP, UDP, Cluster, PodRoutes, Route
from kvestigate.cluster.node.net.translation import DNS_ADDRESS, Address, Ports
from tests.cluster.node.net.conftest import WEB, endpoint, service, services_of, slice_of

POD = "10.244.7.2"
HERE = "127.244.7.2"
DNS = Address("127.0.0.1", 40000)
API = Address("127.0.0.1", 6443)


def routes(*, host_network: bool = False, first_free: int = 0) -> PodRoutes:
    services = services_of(
        service("web", clusterIP="10.0.0.9", ports=WEB),
        slice_of("web", endpoint("10.244.3.4"), ports=[{"name": "web", "port": 80}]),
        service("outside", clusterIP="10.0.0.8", ports=WEB),
        slice_of("outside", endpoint("93.184.0.1"), ports=[{"name": "web", "port": 80}]),
        service("kubernetes", clusterIP="10.0.0.1", ports=[{"name": "https", "port": 443}]),
    )
    cluster = Cluster(services, Ports(first_free), dns=DNS, api=API)
    return PodRoutes(cluster, POD, host_network=host_network)


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        (("0.0.0.0", 8080), (HERE, 8080)),
        (("::", 8080), (HERE, 8080)),
        (("127.0.0.1", 8080), (HERE, 8080)),
        (("127.0.0.1", 0), (HERE, 0)),
        (("::1", 8080), (HERE, 8080)),
        ((POD, 8080), (HERE, 8080)),
        (("0.0.0.0", 0), None),
        (("::", 0), None),
        (("192.0.2.1", 80), None),
        (("224.0.0.1", 80), None),
    ],
)
def test_a_pod_listens_at_its_own_address(
    asked: tuple[str, int], place: tuple[str, int] | None
) -> None:
    wanted = Address(*place) if place is not None else None
    assert routes().binding(Address(*asked)) == wanted
    assert routes(host_network=True).binding(Address(*asked)) is None


def test_low_ports_are_raised_on_both_sides() -> None:
    pod = routes(first_free=1024)
    raised = 80 + 64512
    assert pod.binding(Address("0.0.0.0", 80)) == Address(HERE, raised)
    for ip in ("10.244.3.4", "127.244.3.4", "10.0.0.9"):
        route = pod.route(Address(ip, 80), TCP)
        assert route == Route((Address("127.244.3.4", raised),), from_pod=True)
    # Elsewhere they are what they are.
    assert pod.route(Address("10.0.0.8", 80), TCP) == Route((Address("93.184.0.1", 80),), True)
    assert pod.route(Address("10.0.0.1", 443), TCP) == Route((API,), True)


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        (("10.244.3.4", 9000), [("127.244.3.4", 9000)]),
        (("127.244.3.4", 9000), [("127.244.3.4", 9000)]),
        (("10.0.0.9", 80), [("127.244.3.4", 80)]),
        (("10.0.0.9", 81), []),
        (("10.0.0.1", 443), [API]),
        ((DNS_ADDRESS, 53), [DNS]),
        (("127.0.0.1", 9000), [(HERE, 9000), ("127.0.0.1", 9000)]),
        (("::1", 9000), [(HERE, 9000), ("127.0.0.1", 9000)]),
        (("0.0.0.0", 9000), [(HERE, 9000), ("0.0.0.0", 9000)]),
    ],
)
def test_connections_go_to_who_is_meant(
    asked: tuple[str, int], places: list[tuple[str, int] | Address]
) -> None:
    pod, wanted = routes(), Address(*asked)
    assert pod.concerns(wanted)
    route = pod.route(wanted, TCP)
    assert route is not None
    assert [(one.ip, one.port) for one in route.places] == [
        (one.ip, one.port) if isinstance(one, Address) else one for one in places
    ]
    assert route.from_pod != (wanted.loopback or wanted.wildcard)


@pytest.mark.parametrize("ip", ["93.184.0.1", "192.168.1.1", "2001:db8::1", "10.96.0.10"])
def test_the_world_is_left_alone(ip: str) -> None:
    pod = routes()
    assert not pod.concerns(Address(ip, 80))
    assert pod.route(Address(ip, 80), TCP) is None


def test_a_pod_in_the_machines_network_has_its_loopback() -> None:
    pod = routes(host_network=True)
    assert pod.route(Address("127.0.0.1", 9000), TCP) is None
    assert pod.route(Address("10.0.0.9", 80), TCP) is not None


def test_datagrams_stay_on_the_machines_loopback_unless_the_pod_receives_there() -> None:
    pod = routes()
    assert pod.route(Address("127.0.0.53", 53), UDP) is None
    pod.datagram_ports.add(8125)
    assert pod.route(Address("127.0.0.1", 8125), UDP) == Route((Address(HERE, 8125),))


def test_dns_stands_in_for_the_machines_name_servers_where_told() -> None:
    pod = routes()
    pod.resolvers = frozenset({DNS_ADDRESS, "192.0.2.53", "127.0.0.53"})
    for ip in pod.resolvers:
        assert pod.route(Address(ip, 53), UDP) == Route((DNS,), from_pod=True)
    assert pod.route(Address("192.0.2.53", 443), TCP) is None
