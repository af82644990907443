"""The cluster's names, from its Services and their endpoints. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from socket import AF_INET, inet_pton

from dns import name as dns_name
from dns.rcode import Rcode
from dns.rdata import Rdata
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType
from dns.rdtypes.ANY.CNAME import CNAME
from dns.rdtypes.ANY.PTR import PTR
from dns.rdtypes.IN.A import A
from dns.rdtypes.IN.SRV import SRV

from kvestigate.client.cache import Key
from kvestigate.cluster.node.net.services import Services
from kvestigate.kube.views.network import Endpoint, Service

DOMAIN = "cluster.local"
TTL = 5
"""Seconds for which an answer, or its absence, may be remembered."""
_REVERSE = ".in-addr.arpa"
_IN = RdataClass.IN


@dataclass(frozen=True, slots=True)
class Found:
    """What a name of the cluster stands for."""

    code: Rcode
    records: tuple[Rdata, ...] = ()
    """The records of the type that was asked for; empty if the name has only other types."""
    alias: str = ""
    """The name that an ExternalName Service stands for."""
    behind: tuple[Rdata, ...] | None = ()
    """The records of `alias`; None where other name servers have to be asked for them."""


NOTHING = Found(Rcode.NXDOMAIN)


def look_up(services: Services, name: str, type: RdataType) -> Found | None:
    """None for names that are not the cluster's."""
    if name.endswith(_REVERSE):
        target = _reverse(services, name)
        return None if target is None else _found(type, PTR(_IN, RdataType.PTR, _name(target)))
    if name != DOMAIN and not name.endswith(f".{DOMAIN}"):
        return None
    labels = name.removesuffix(DOMAIN).rstrip(".").split(".")
    match labels:
        case [*rest, namespace, "svc"]:
            return _in_namespace(services, rest, namespace, type)
        case [dashed, _, "pod"]:
            return _pod(dashed, type)
        case [""] | ["svc"] | ["pod"] | [_, "pod"]:
            return Found(Rcode.NOERROR)
    return NOTHING


def service_name(key: Key) -> str:
    return f"{key.name}.{key.namespace}.svc.{DOMAIN}"


def _in_namespace(services: Services, rest: list[str], namespace: str, type: RdataType) -> Found:
    if not rest:
        known = any(key.namespace == namespace for key in services.by_key)
        return Found(Rcode.NOERROR) if known else NOTHING
    key = Key(namespace, rest[-1])
    service = services.by_key.get(key)
    if service is None:
        return NOTHING
    if service.spec.type == "ExternalName":
        return _external(services, service, type) if len(rest) == 1 else NOTHING
    match rest[:-1]:
        case []:
            return _service(services, key, service, type)
        case [host]:
            return _host(services, key, service, host, type)
        case [port, protocol] if port.startswith("_") and protocol.startswith("_"):
            return _ports(services, key, service, port[1:], protocol[1:].upper(), type)
    return NOTHING


def _service(services: Services, key: Key, service: Service, type: RdataType) -> Found:
    if not _headless(service):
        return _found(type, _a(service.spec.cluster_ip))
    endpoints = services.ready_endpoints(key)
    return _addresses(endpoints, type)


def _host(services: Services, key: Key, service: Service, host: str, type: RdataType) -> Found:
    if not _headless(service):
        return NOTHING
    matching = [
        endpoint for endpoint in services.ready_endpoints(key) if _hostname(endpoint) == host
    ]
    return _addresses(matching, type)


def _addresses(endpoints: Iterable[Endpoint], type: RdataType) -> Found:
    records = [_a(ip) for ip in dict.fromkeys(map(_ip, endpoints)) if _is_four(ip)]
    return _found(type, *records) if records else NOTHING


def _ports(
    services: Services, key: Key, service: Service, name: str, protocol: str, type: RdataType
) -> Found:
    port = next(
        (
            candidate
            for candidate in service.spec.ports
            if candidate.name == name and candidate.protocol == protocol
        ),
        None,
    )
    if port is None:
        return NOTHING
    if not _headless(service):
        return _found(type, _srv(port.port, service_name(key), weight=100))
    behind = services.backends(key, port)
    records = [
        _srv(
            backend.address.port,
            f"{_hostname(backend.endpoint)}.{service_name(key)}",
            weight=max(100 // len(behind), 1),
        )
        for backend in behind
    ]
    return _found(type, *records) if records else NOTHING


def _external(services: Services, service: Service, type: RdataType) -> Found:
    """An alias; a name of the cluster behind it is followed, another one is left to upstream."""
    target = service.spec.external_name.rstrip(".").lower()
    alias = CNAME(_IN, RdataType.CNAME, _name(target))
    if type is RdataType.CNAME:
        return Found(Rcode.NOERROR, (alias,))
    if not target.endswith(f".{DOMAIN}"):
        return Found(Rcode.NOERROR, (alias,), target, behind=None)
    owner = target.removesuffix(f".svc.{DOMAIN}").split(".")
    followed = services.by_key.get(Key(owner[-1], owner[-2])) if len(owner) > 1 else None
    behind = None
    if followed is not None and followed.spec.type != "ExternalName":
        behind = look_up(services, target, type)
    return Found(Rcode.NOERROR, (alias,), target, behind.records if behind is not None else ())


def _pod(dashed: str, type: RdataType) -> Found:
    """`10-244-1-2.NAMESPACE.pod`: the address itself, written as a name."""
    ip = dashed.replace("-", ".")
    return _found(type, _a(ip)) if _is_four(ip) and ip.count(".") == 3 else NOTHING


def _reverse(services: Services, name: str) -> str | None:
    ip = ".".join(reversed(name.removesuffix(_REVERSE).split(".")))
    service = services.at(ip)
    if service is not None:
        return service_name(Key(service.metadata.namespace, service.metadata.name))
    for key, endpoint in _all_endpoints(services):
        if _ip(endpoint) == ip:
            return f"{_hostname(endpoint)}.{service_name(key)}"
    return None


def _all_endpoints(services: Services) -> Iterator[tuple[Key, Endpoint]]:
    for key in sorted(services.by_key):
        for endpoint in services.ready_endpoints(key):
            yield key, endpoint


def _found(type: RdataType, *records: Rdata) -> Found:
    """The name is there; of its records those of the type that was asked for."""
    wanted = tuple(record for record in records if type in (record.rdtype, RdataType.ANY))
    return Found(Rcode.NOERROR, wanted)


def _a(ip: str) -> A:
    return A(_IN, RdataType.A, ip)


def _srv(port: int, target: str, *, weight: int) -> SRV:
    return SRV(_IN, RdataType.SRV, 0, weight, port, _name(target))


def _name(text: str) -> dns_name.Name:
    return dns_name.from_text(text)


def _headless(service: Service) -> bool:
    return service.spec.cluster_ip in ("", "None")


def _ip(endpoint: Endpoint) -> str:
    return endpoint.addresses[0]


def _hostname(endpoint: Endpoint) -> str:
    return endpoint.hostname or _ip(endpoint).replace(".", "-").replace(":", "-")


def _is_four(ip: str) -> bool:
    try:
        inet_pton(AF_INET, ip)
    except OSError:
        return False
    return True
