"""Endpoints: the addresses behind a service, as they were published before EndpointSlices."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.network.service_rules import validate_endpoint_ip
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes


class EndpointsKind(Kind):
    creates_on_update = True
    deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"

    def default(self, obj: Object) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port.setdefault("protocol", "TCP")

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return checks.items(_subset)("subsets", obj.get("subsets") or ())


def _subset(path: str, subset: Object) -> Causes:
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        yield causes.required(path, "must specify `addresses` or `notReadyAddresses`")
    for field in ("addresses", "notReadyAddresses"):
        for index, address in enumerate(subset.get(field) or ()):
            yield from _address(f"{path}.{field}[{index}]", address)
    ports = subset.get("ports") or []
    for index, port in enumerate(ports):
        yield from _port(f"{path}.ports[{index}]", port, named=len(ports) > 1)


def _address(path: str, address: Object) -> Causes:
    ip = address["ip"]
    yield from checks.ip(f"{path}.ip", ip)
    if "hostname" in address:
        yield from checks.label(f"{path}.hostname", address["hostname"])
    if "nodeName" in address:
        yield from checks.subdomain(f"{path}.nodeName", address["nodeName"])
    if checks.address(ip) is None:
        yield causes.invalid(f"{path}.ip", ip, "must be a valid IP address")
    else:
        yield from validate_endpoint_ip(f"{path}.ip", ip)


def _port(path: str, port: Object, *, named: bool) -> Causes:
    if name := port.get("name"):
        yield from checks.label(f"{path}.name", name)
    elif named:
        yield causes.required(f"{path}.name")
    yield from checks.port_number(f"{path}.port", port["port"])
    yield from checks.choice(f"{path}.protocol", port["protocol"], ("SCTP", "TCP", "UDP"))
    if "appProtocol" in port:
        yield from checks.label_key(f"{path}.appProtocol", port["appProtocol"])
