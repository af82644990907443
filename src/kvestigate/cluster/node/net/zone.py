"""The cluster's names, from its Services and their endpoints. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from socket import AF_INET, inet_pton

from kvestigate.client.informer import Key
from kvestigate.cluster.node.net import dns_message as dns
from kvestigate.cluster.node.net.dns_message import Code, Record, Type
from kvestigate.cluster.node.net.services import Services
from kvestigate.kube.views.network import Endpoint, Service

DOMAIN = "cluster.local"
_REVERSE = ".in-addr.arpa"


@dataclass(frozen=True, slots=True)
class Found:
    """What there is under a name; `records` may be empty for the type that was asked for."""

    code: Code
    records: tuple[Record, ...] = ()
    alias: str = ""
    """A name outside of the cluster that this one stands for: its addresses are to be added."""


NOTHING = Found(Code.NO_SUCH_NAME)


def look_up(services: Services, name: str, type: int) -> Found | None:
    """None for names that are not the cluster's."""
    if name.endswith(_REVERSE):
        target = _reverse(services, name)
        return None if target is None else _found(type, dns.named(Type.PTR, target))
    if name != DOMAIN and not name.endswith(f".{DOMAIN}"):
        return None
    labels = name.removesuffix(DOMAIN).rstrip(".").split(".")
    match labels:
        case [*rest, namespace, "svc"]:
            return _in_namespace(services, rest, namespace, type)
        case [dashed, _, "pod"]:
            return _pod(dashed, type)
        case [""] | ["svc"] | ["pod"] | [_, "pod"]:
            return Found(Code.OK)
    return NOTHING


def service_name(key: Key) -> str:
    return f"{key.name}.{key.namespace}.svc.{DOMAIN}"


def _in_namespace(services: Services, rest: list[str], namespace: str, type: int) -> Found:
    if not rest:
        known = any(key.namespace == namespace for key in services.by_key)
        return Found(Code.OK) if known else NOTHING
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


def _service(services: Services, key: Key, service: Service, type: int) -> Found:
    if not _headless(service):
        return _found(type, dns.a(service.spec.cluster_ip))
    endpoints = services.ready_endpoints(key)
    records = [dns.a(ip) for ip in dict.fromkeys(map(_ip, endpoints)) if _is_four(ip)]
    return _found(type, *records) if records else NOTHING


def _host(services: Services, key: Key, service: Service, host: str, type: int) -> Found:
    if not _headless(service):
        return NOTHING
    matching = [one for one in services.ready_endpoints(key) if _hostname(one) == host]
    records = [dns.a(ip) for ip in dict.fromkeys(map(_ip, matching)) if _is_four(ip)]
    return _found(type, *records) if records else NOTHING


def _ports(
    services: Services, key: Key, service: Service, name: str, protocol: str, type: int
) -> Found:
    port = next(
        (one for one in service.spec.ports if one.name == name and one.protocol == protocol), None
    )
    if port is None:
        return NOTHING
    if not _headless(service):
        return _found(type, dns.srv(port.port, service_name(key), weight=100))
    behind = services.backends(key, port)
    records = [
        dns.srv(
            one.address.port,
            f"{_hostname(one.endpoint)}.{service_name(key)}",
            weight=max(100 // len(behind), 1),
        )
        for one in behind
    ]
    return _found(type, *records) if records else NOTHING


def _external(services: Services, service: Service, type: int) -> Found:
    """An alias; a name of the cluster behind it is followed, another one is left to upstream."""
    target = service.spec.external_name.rstrip(".").lower()
    alias = dns.named(Type.CNAME, target)
    if type == Type.CNAME:
        return Found(Code.OK, (alias,))
    behind = None
    if not target.endswith(f".{DOMAIN}"):
        return Found(Code.OK, (alias,), alias=target)
    owner = target.removesuffix(f".svc.{DOMAIN}").split(".")
    followed = services.by_key.get(Key(owner[-1], owner[-2])) if len(owner) > 1 else None
    if followed is not None and followed.spec.type != "ExternalName":
        behind = look_up(services, target, type)
    records = behind.records if behind is not None else ()
    named = (Record(one.type, one.data, target, one.ttl) for one in records)
    return Found(Code.OK, (alias, *named))


def _pod(dashed: str, type: int) -> Found:
    """`10-244-1-2.NAMESPACE.pod`: the address itself, written as a name."""
    ip = dashed.replace("-", ".")
    return _found(type, dns.a(ip)) if _is_four(ip) and ip.count(".") == 3 else NOTHING


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


def _found(type: int, *records: Record) -> Found:
    """The name is there; of its records those of the type that was asked for."""
    return Found(Code.OK, tuple(one for one in records if type in (one.type, Type.ANY)))


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
