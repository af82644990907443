"""Columns of Services, Endpoints and networking, and of aggregated API servers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Column,
    Columns,
    at,
    column,
    first,
    joined,
    pairs,
    reference,
)
from kvestigate.cluster.plane.response.tables.workloads import selected

_SHOWN = 3
_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def _external(obj: Object) -> str:
    spec = obj["spec"]
    type_, given = spec.get("type"), spec.get("externalIPs") or []
    if type_ == "ExternalName":
        return str(spec.get("externalName", ""))
    if type_ == "LoadBalancer":
        return ",".join([*_balanced(obj), *given]) or "<pending>"
    return ",".join(given) or (NONE if type_ else UNKNOWN)


def _balanced(obj: Object) -> list[str]:
    """The addresses that a load balancer gave, in order."""
    ingress = at(obj, "status", "loadBalancer", "ingress") or ()
    return sorted({each.get("ip") or each.get("hostname") or "" for each in ingress} - {""})


def _service_port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port['protocol']}"


def _service_ports(obj: Object) -> str:
    return ",".join(map(_service_port, obj["spec"].get("ports") or ())) or NONE


SERVICES = Columns(
    NAME,
    column("Type", "spec.type"),
    column("Cluster-IP", lambda obj: (obj["spec"].get("clusterIPs") or [NONE])[0]),
    column("External-IP", _external),
    column("Port(s)", _service_ports),
    AGE,
    column("Selector", lambda obj: pairs(obj["spec"].get("selector")), wide=True),
)


def _addresses(obj: Object) -> Iterator[str]:
    subsets = obj.get("subsets") or []
    if not subsets:
        yield NONE
    for subset in subsets:
        addresses = [each["ip"] for each in subset.get("addresses") or ()]
        ports = [each["port"] for each in subset.get("ports") or ()]
        if not ports:
            yield from addresses
        for port in ports:
            for ip in addresses:
                yield f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


ENDPOINTS = Columns(NAME, column("Endpoints", lambda obj: first([*_addresses(obj)], _SHOWN)), AGE)


def _slice_ports(obj: Object) -> str:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
    return first(ports, _SHOWN) or UNSET


def _slice_addresses(obj: Object) -> str:
    endpoints = obj.get("endpoints") or ()
    addresses = [address for each in endpoints for address in each.get("addresses") or ()]
    return first(addresses, _SHOWN) or UNSET


ENDPOINT_SLICES = Columns(
    NAME,
    column("AddressType", "addressType"),
    column("Ports", _slice_ports),
    column("Endpoints", _slice_addresses),
    AGE,
)


def _hosts(obj: Object) -> str:
    rules = obj["spec"].get("rules") or []
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    if not hosts:
        return "*"
    shown = ",".join(hosts[:_SHOWN])
    cut = len(hosts) > _SHOWN or (len(hosts) == _SHOWN and not rules[-1].get("host"))
    return f"{shown} + {len(rules) - _SHOWN} more..." if cut else shown


INGRESSES = Columns(
    NAME,
    column("Class", "spec.ingressClassName", NONE),
    column("Hosts", _hosts),
    column("Address", lambda obj: ",".join(_balanced(obj))),
    column("Ports", lambda obj: "80, 443" if obj["spec"].get("tls") else "80"),
    AGE,
)


def _parameters(obj: Object) -> str:
    parameters = obj["spec"].get("parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
    return f"{parameters['kind']}{group}/{parameters['name']}"


def default_marked(*annotations: str) -> Column:
    """The name of a class, and whether it is the one that is used unless another is named."""

    def read(obj: Object) -> str:
        meta = obj["metadata"]
        present = meta.get("annotations") or {}
        is_default = any(present.get(name) == "true" for name in annotations)
        return f"{meta['name']} (default)" if is_default else str(meta["name"])

    return column("Name", read, format="name")


INGRESS_CLASSES = Columns(
    default_marked(_DEFAULT_CLASS),
    column("Controller", "spec.controller"),
    column("Parameters", _parameters),
    AGE,
)
NETWORK_POLICIES = Columns(NAME, column("Pod-Selector", selected("spec.podSelector")), AGE)
SERVICE_CIDRS = Columns(NAME, column("CIDRs", joined("spec.cidrs")), AGE)


def _parent(obj: Object) -> str:
    parent = obj["spec"].get("parentRef")
    if parent is None:
        return NONE
    resource, group = parent.get("resource", ""), parent.get("group", "")
    qualified = f"{resource}.{group}" if group else resource
    parts = [qualified.lower(), parent.get("namespace", ""), parent.get("name", "")]
    return "/".join(part for part in parts if part)


# One cell more than there are columns: so does kube-apiserver.
IP_ADDRESSES = Columns(NAME, column("ParentRef", _parent), Column("", AGE.read))


def _available(obj: Object) -> str:
    for each in obj["status"].get("conditions") or ():
        if each.get("type") == "Available":
            status = str(each.get("status", ""))
            reason = each.get("reason")
            return f"{status} ({reason})" if reason and status != "True" else status
    return "Unknown"


API_SERVICES = Columns(
    NAME,
    column("Service", reference("spec.service", "namespace", "name", default="Local")),
    column("Available", _available),
    AGE,
)
