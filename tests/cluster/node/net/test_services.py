"""What stands behind a Service's address."""

from __future__ import annotations

from kvestigate.client.cache import Change, key_of
from kvestigate.cluster.node.net.services import Services
from kvestigate.cluster.node.net.translation import Address
from tests.cluster.node.net.conftest import WEB, endpoint, service, services_of, slice_of

AT = Address("10.0.0.9", 80)


def chosen(services: Services, times: int = 4, client: str = "10.244.0.2") -> list[str]:
    found = [services.choose(AT, "TCP", client) for _ in range(times)]
    return [one.ip if one is not None else "" for one in found]


def test_endpoints_take_turns_over_all_slices() -> None:
    services = services_of(
        service("web", clusterIP="10.0.0.9", ports=WEB),
        slice_of("web", endpoint("10.244.0.3"), part=1),
        slice_of("web", endpoint("10.244.0.1"), endpoint("10.244.0.2", ready=True)),
        slice_of("other", endpoint("10.244.0.4")),
    )
    assert chosen(services) == ["10.244.0.1", "10.244.0.2", "10.244.0.3", "10.244.0.1"]


def test_only_ready_endpoints_are_chosen_unless_all_are_leaving() -> None:
    web = service("web", clusterIP="10.0.0.9", ports=WEB)
    leaving = endpoint("10.244.0.1", ready=False, serving=True, terminating=True)
    broken = endpoint("10.244.0.2", ready=False, serving=False)
    services = services_of(web, slice_of("web", leaving, broken, endpoint("10.244.0.3")))
    assert set(chosen(services)) == {"10.244.0.3"}
    services = services_of(web, slice_of("web", leaving, broken))
    assert set(chosen(services)) == {"10.244.0.1"}
    services = services_of(web, slice_of("web", broken))
    assert set(chosen(services)) == {""}


def test_ports_are_matched_by_number_protocol_and_name() -> None:
    ports = [
        {"name": "web", "port": 80, "protocol": "TCP"},
        {"name": "dns", "port": 80, "protocol": "UDP"},
    ]
    behind = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "web", "port": 8080}]
    services = services_of(
        service("web", clusterIP="10.0.0.9", ports=ports),
        slice_of("web", endpoint("10.244.0.1"), ports=behind),
    )
    assert services.choose(AT, "TCP", "") == Address("10.244.0.1", 8080)
    assert services.choose(AT, "UDP", "") == Address("10.244.0.1", 53)
    assert services.choose(Address("10.0.0.9", 81), "TCP", "") is None
    assert services.choose(Address("10.0.0.8", 80), "TCP", "") is None


def test_a_client_stays_where_it_is_when_others_go() -> None:
    ips = [f"10.244.0.{number}" for number in range(2, 12)]
    web = service("web", clusterIP="10.0.0.9", ports=WEB, sessionAffinity="ClientIP")
    before = services_of(web, slice_of("web", *map(endpoint, ips)))
    clients = [f"10.244.1.{number}" for number in range(2, 40)]
    places = {client: chosen(before, 1, client)[0] for client in clients}
    assert len(set(places.values())) > 3
    after = services_of(web, slice_of("web", *map(endpoint, ips[1:])))
    for client, place in places.items():
        if place != ips[0]:
            assert chosen(after, 2, client) == [place, place]


def test_changes_are_followed() -> None:
    web = service("web", clusterIP="10.0.0.9", ports=WEB)
    first, second = slice_of("web", endpoint("10.244.0.1")), slice_of("web", endpoint("10.244.0.2"))
    services = services_of(web, first)
    services.on_slice(Change("MODIFIED", key_of(first), first, second))
    assert set(chosen(services)) == {"10.244.0.2"}
    moved = service("web", clusterIP="10.0.0.10", ports=WEB)
    services.on_service(Change("MODIFIED", key_of(web), web, moved))
    assert services.at("10.0.0.9") is None
    assert services.at("10.0.0.10") == moved
    services.on_slice(Change("DELETED", key_of(second), second, None))
    assert services.choose(Address("10.0.0.10", 80), "TCP", "") is None
    services.on_service(Change("DELETED", key_of(moved), moved, None))
    assert services.at("10.0.0.10") is None
