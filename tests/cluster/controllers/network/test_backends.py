"""Endpoints and EndpointSlices of a Service."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.cluster.controllers.network import endpoints, endpointslice
from kvestigate.cluster.controllers.network.backends import backends
from kvestigate.kube.views.network import EndpointSlice, Service
from kvestigate.kube.views.pods import Pod
from tests.cluster.controllers.builders import at, pod, view
from tests.cluster.controllers.objects import service as manifest


def service(**spec: Any) -> Service:
    return view(Service, "web", spec=manifest(**spec)["spec"])


def backend(name: str, ip: str, *, leaving: bool = False, **more: Any) -> Pod:
    meta: dict[str, Any] = {"labels": {"app": "web"}}
    if leaving:
        meta["deletionTimestamp"] = at()
    return pod(name, meta=meta, podIP=ip, **more)


PODS = [
    backend("ready", "10.0.0.1"),
    backend("waiting", "10.0.0.2", ready=False),
    backend("leaving", "10.0.0.3", leaving=True),
    backend("done", "10.0.0.4", phase="Succeeded"),
    backend("unborn", ""),
    pod("other", podIP="10.0.0.5", meta={"labels": {"app": "db"}}),
]


def _names(found: Any) -> list[str]:
    return [address.target_ref.name for address in found]


def test_ready_and_waiting_addresses() -> None:
    it = service()
    (subset,) = endpoints.decide(it, backends(it, PODS))
    assert _names(subset.addresses) == ["ready"]
    assert _names(subset.not_ready_addresses) == ["waiting"]
    assert [(port.name, port.port) for port in subset.ports] == [("http", 8080)]


def test_a_service_may_publish_those_that_are_not_ready() -> None:
    it = service(publishNotReadyAddresses=True)
    (subset,) = endpoints.decide(it, backends(it, PODS))
    assert _names(subset.addresses) == ["ready", "waiting", "leaving"]


def test_named_ports_differ_by_pod() -> None:
    it = service(ports=[{"name": "http", "port": 80, "targetPort": "web"}])

    def listening(name: str, ip: str, port: int) -> Pod:
        ports = [{"name": "web", "containerPort": port}]
        return backend(name, ip, spec={"containers": [{"name": "main", "ports": ports}]})

    pods = [listening("a", "10.0.0.1", 8080), listening("b", "10.0.0.2", 9090)]
    found = endpoints.decide(it, backends(it, [*pods, backend("c", "10.0.0.3")]))
    assert [[port.port for port in subset.ports] for subset in found] == [[8080], [9090]]


def test_slices_say_more() -> None:
    it = service()
    zones = {"": "north"}
    decision = endpointslice.decide(it, backends(it, PODS), [], zones)
    ((_, made),) = decision.create
    states = {
        endpoint.target_ref.name: (
            endpoint.conditions.ready,
            endpoint.conditions.serving,
            endpoint.conditions.terminating,
        )
        for endpoint in made
        if endpoint.target_ref
    }
    assert states == {
        "ready": (True, True, False),
        "waiting": (False, False, False),
        "leaving": (False, True, True),
    }
    assert {endpoint.zone for endpoint in made} == {"north"}


def _many(count: int) -> list[Pod]:
    return [backend(f"p{n:03}", f"10.0.{n // 250}.{n % 250}") for n in range(count)]


def _slices(it: Service, pods: list[Pod], present: list[EndpointSlice]) -> list[EndpointSlice]:
    decision = endpointslice.decide(it, backends(it, pods), present, {})
    found = {each.metadata.name: each for each in present}
    for each, content in decision.update:
        found[each.metadata.name] = msgspec.structs.replace(each, endpoints=content)
    for each in decision.delete:
        del found[each.metadata.name]
    for ports, content in decision.create:
        name = f"web-{len(found)}"
        made = view(EndpointSlice, name)
        found[name] = msgspec.structs.replace(made, ports=ports, endpoints=content)
    return list(found.values())


def test_a_hundred_to_a_slice() -> None:
    it = service()
    present = _slices(it, _many(250), [])
    assert [len(each.endpoints) for each in present] == [100, 100, 50]
    assert endpointslice.decide(it, backends(it, _many(250)), present, {}) == (
        endpointslice.Decision()
    )


def test_a_lost_pod_changes_one_slice_only() -> None:
    it = service()
    present = _slices(it, _many(250), [])
    pods = [each for each in _many(250) if each.metadata.name != "p150"]
    decision = endpointslice.decide(it, backends(it, pods), present, {})
    moved = [len(content) for _, content in decision.update]
    assert sum(map(len, (decision.create, decision.delete))) == 0
    assert moved == [99]


def test_slices_of_other_ports_go() -> None:
    it = service()
    present = _slices(it, PODS, [])
    changed = service(ports=[{"name": "http", "port": 80, "targetPort": 9}])
    decision = endpointslice.decide(changed, backends(changed, PODS), present, {})
    assert len(decision.create) == 1
    assert list(decision.delete) == present
