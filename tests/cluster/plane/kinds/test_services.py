"""Services: whose address and ports nobody else has."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from kvestigate.cluster.plane.kinds.network.service_addresses import ADDRESSES, NODE_PORTS
from tests.cluster.plane.conftest import Api

SERVICES = "/api/v1/namespaces/default/services"
A = f"{SERVICES}/a"
MERGE = "application/merge-patch+json"


def service(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_no_two_services_share_an_address(api: Api) -> None:
    given = [
        (await api.post(SERVICES, service(f"s{number}"))).body["spec"]["clusterIP"]
        for number in range(300)
    ]
    assert len({*given, "10.0.0.1"}) == 301
    assert all(ip_address(address) in ADDRESSES for address in given)


async def test_no_two_services_share_a_node_port(api: Api) -> None:
    taken: list[int] = []
    for number in range(50):
        ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
        made = await api.post(SERVICES, service(f"s{number}", type="NodePort", ports=ports))
        taken += [port["nodePort"] for port in made.body["spec"]["ports"]]
    assert len(set(taken)) == 100
    assert all(port in NODE_PORTS for port in taken)


async def test_protocols_of_one_port_share_their_node_port(api: Api) -> None:
    ports = [{"port": 53, "name": "a"}, {"port": 53, "name": "b", "protocol": "UDP"}]
    made = (await api.post(SERVICES, service(type="NodePort", ports=ports))).body
    first, second = made["spec"]["ports"]
    assert first["nodePort"] == second["nodePort"]


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ({"clusterIP": "10.0.0.1"}, "spec.clusterIPs", "provided IP is already allocated"),
        ({"clusterIP": "192.0.2.1"}, "spec.clusterIPs", "does not match the current range"),
        ({"clusterIP": "10.0.0.0"}, "spec.clusterIPs", "is not in the valid range"),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            "spec.ports[0].nodePort",
            "The range of valid ports is 30000-32767",
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]},
            "spec.ports[0].nodePort",
            "provided port is already allocated",
        ),
    ],
)
async def test_what_is_taken_is_refused(
    api: Api, spec: dict[str, Any], field: str, why: str
) -> None:
    ports = [{"port": 80, "nodePort": 30080}]
    assert (await api.post(SERVICES, service("first", type="NodePort", ports=ports))).status == 201
    refused = await api.post(SERVICES, service(**spec))
    assert refused.status == 422
    (cause,) = refused.body["details"]["causes"]
    assert cause["field"] == field
    assert why in cause["message"]


async def test_an_address_is_free_again_after_its_service(api: Api) -> None:
    await api.post(SERVICES, service(clusterIP="10.0.7.7"))
    await api.delete(A)
    assert (await api.post(SERVICES, service("b", clusterIP="10.0.7.7"))).status == 201


async def test_an_update_that_does_not_mention_them_keeps_address_and_ports(api: Api) -> None:
    made = (await api.post(SERVICES, service(type="NodePort"))).body
    kept = (await api.put(A, service(type="NodePort"))).body
    assert kept["spec"] == made["spec"]


async def test_the_address_of_a_service_does_not_change(api: Api) -> None:
    await api.post(SERVICES, service())
    refused = await api.patch(A, {"spec": {"clusterIP": "10.0.9.9"}})
    (cause,) = refused.body["details"]["causes"]
    assert cause["field"] == "spec.clusterIPs[0]"
    assert cause["message"].endswith("may not change once set")


async def test_a_service_sheds_what_only_its_former_type_needed(api: Api) -> None:
    await api.post(SERVICES, service(type="LoadBalancer", externalTrafficPolicy="Local"))
    plain = (await api.patch(A, {"spec": {"type": "ClusterIP"}})).body["spec"]
    assert not plain.keys() & {
        "externalTrafficPolicy",
        "healthCheckNodePort",
        "allocateLoadBalancerNodePorts",
    }
    assert "nodePort" not in plain["ports"][0]
    change = {"spec": {"type": "ExternalName", "externalName": "example.com"}}
    named = (await api.patch(A, change)).body["spec"]
    assert not named.keys() & {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}
    again = (await api.patch(A, {"spec": {"type": "ClusterIP", "externalName": None}})).body["spec"]
    assert ip_address(again["clusterIP"]) in ADDRESSES


async def test_services_are_selected_by_address_and_type(api: Api) -> None:
    made = (await api.post(SERVICES, service(type="NodePort"))).body["spec"]["clusterIP"]
    for selector in (f"spec.clusterIP={made}", "spec.type=NodePort"):
        (found,) = (await api.get(f"{SERVICES}?fieldSelector={selector}")).body["items"]
        assert found["metadata"]["name"] == "a"
