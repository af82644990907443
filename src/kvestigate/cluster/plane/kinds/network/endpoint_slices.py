"""EndpointSlices. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.kinds import checks
from kvestigate.cluster.plane.kinds.network.service_rules import validate_endpoint_ip
from kvestigate.cluster.plane.model.kind import Kind, Object, Scene
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Causes

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
PROTOCOLS = ("SCTP", "TCP", "UDP")
_ENDPOINTS_MAX, _ADDRESSES_MAX, _PORTS_MAX, _HINTS_MAX = 1000, 100, 20000, 8


class EndpointSliceKind(Kind):
    counts_generations = True
    warns_on_update = False

    def default(self, obj: Object) -> None:
        for endpoint in obj.get("endpoints") or ():
            endpoint.pop("deprecatedTopology", None)
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def is_new_generation(self, new: Object, old: Object) -> bool:
        # Labels say whose endpoints they are.
        labels = new["metadata"].get("labels", {})
        relabelled = bool(labels != old["metadata"].get("labels", {}))
        return relabelled or super().is_new_generation(new, old)

    def validate(self, obj: Object, scene: Scene) -> Causes:
        return [*_head(obj), *_endpoints(obj)]

    def validate_changed(self, new: Object, old: Object, scene: Scene) -> Causes:
        yield from _head(new)
        if new.get("endpoints") != old.get("endpoints"):
            yield from _endpoints(new)
        yield from checks.immutable("", new, old, "addressType")

    def warnings(self, obj: Object) -> list[str]:
        deprecated = obj["addressType"] == "FQDN"
        return ["spec.addressType: FQDN endpoints are deprecated"] if deprecated else []


def _head(obj: Object) -> Causes:
    yield from checks.one_of("addressType", obj.get("addressType", ""), ADDRESS_TYPES)
    ports = obj.get("ports") or []
    if len(ports) > _PORTS_MAX:
        yield causes.too_many("ports", len(ports), _PORTS_MAX)
    else:
        yield from _ports(ports)


def _endpoints(obj: Object) -> Causes:
    endpoints = obj.get("endpoints") or []
    if len(endpoints) > _ENDPOINTS_MAX:
        yield causes.too_many("endpoints", len(endpoints), _ENDPOINTS_MAX)
        return
    for index, endpoint in enumerate(endpoints):
        yield from _endpoint(f"endpoints[{index}]", endpoint, obj.get("addressType", ""))


def _ports(ports: list[Object]) -> Causes:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path = f"ports[{index}]"
        if port["name"]:
            yield from checks.label(f"{path}.name", port["name"])
        if port["name"] in seen:
            yield causes.duplicate(f"{path}.name", port["name"])
        seen.add(port["name"])
        yield from checks.choice(f"{path}.protocol", port["protocol"], PROTOCOLS)
        if "appProtocol" in port:
            yield from checks.label_key(f"{path}.appProtocol", port["appProtocol"])


def _endpoint(path: str, endpoint: Object, kind: str) -> Causes:
    addresses = endpoint.get("addresses") or []
    if not addresses:
        yield causes.required(f"{path}.addresses", "must contain at least 1 address")
    elif len(addresses) > _ADDRESSES_MAX:
        yield causes.too_many(f"{path}.addresses", len(addresses), _ADDRESSES_MAX)
    for index, address in enumerate(addresses):
        if kind in ("IPv4", "IPv6"):
            yield from _address(f"{path}.addresses", index, address, kind)
        elif kind == "FQDN":
            yield from _domain(f"{path}.addresses[{index}]", address)
    if "nodeName" in endpoint:
        yield from checks.subdomain(f"{path}.nodeName", endpoint["nodeName"])
    if "hostname" in endpoint:
        yield from checks.label(f"{path}.hostname", endpoint["hostname"])
    if "hints" in endpoint:
        yield from _hints(f"{path}.hints", endpoint["hints"])


def _address(path: str, index: int, text: str, kind: str) -> Causes:
    address = checks.address(text)
    if address is None:
        yield from checks.ip(f"{path}[{index}]", text)
        return
    if f"IPv{address.version}" != kind:
        yield causes.invalid(path, text, f"must be an {kind} address")
    yield from validate_endpoint_ip(f"{path}[{index}]", text)


def _domain(path: str, name: str) -> Causes:
    if not name:
        yield causes.required(path)
        return
    bare = name.removesuffix(".")
    if problems := names.subdomain_problems(bare):
        yield from checks.each(path, name, problems)
    elif "." not in bare:
        why = "should be a domain with at least two segments separated by dots"
        yield causes.invalid(path, name, why)


def _hints(path: str, hints: Object) -> Causes:
    for field in ("forZones", "forNodes"):
        entries = hints.get(field) or []
        if len(entries) > _HINTS_MAX:
            yield causes.too_many(f"{path}.{field}", len(entries), _HINTS_MAX)
            return
        seen: set[str] = set()
        for index, entry in enumerate(entries):
            at, name = f"{path}.{field}[{index}].name", entry.get("name", "")
            if name in seen:
                yield causes.duplicate(at, name)
            seen.add(name)
            zone = field == "forZones"
            judge = names.label_value_problems if zone else names.subdomain_problems
            yield from checks.each(at, name, judge(name))
