"""Columns of networking, discovery and the API servers behind this one. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    NAME,
    NONE,
    UNSET,
    Cells,
    Columns,
    age,
    strings,
)
from kvestigate.cluster.plane.response.tables.services import balanced
from kvestigate.cluster.plane.response.tables.workloads import selected

_SHOWN = 3
_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def _ingress(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    return [
        obj["metadata"]["name"],
        spec.get("ingressClassName", NONE),
        _hosts(spec.get("rules") or []),
        ",".join(balanced(obj)),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _hosts(rules: list[Object]) -> str:
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    if not hosts:
        return "*"
    shown = ",".join(hosts[:_SHOWN])
    cut = len(hosts) > _SHOWN or (len(hosts) == _SHOWN and not rules[-1].get("host"))
    return f"{shown} + {len(rules) - _SHOWN} more..." if cut else shown


def _ingress_class(obj: Object, now: float) -> Cells:
    spec, parameters = obj["spec"], obj["spec"].get("parameters")
    named = NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
        named = f"{parameters['kind']}{group}/{parameters['name']}"
    name = default_marked(obj, _DEFAULT_CLASS)
    return [name, spec.get("controller", ""), named, age(obj, now)]


def default_marked(obj: Object, *annotations: str) -> str:
    """The name of a class, and whether it is the one that is used unless another is named."""
    present = obj["metadata"].get("annotations") or {}
    is_default = any(present.get(name) == "true" for name in annotations)
    return f"{obj['metadata']['name']} (default)" if is_default else str(obj["metadata"]["name"])


def _network_policy(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], selected(obj["spec"]["podSelector"]), age(obj, now)]


def _address(obj: Object, now: float) -> Cells:
    # One cell more than there are columns: so does the server.
    return [obj["metadata"]["name"], _parent(obj["spec"].get("parentRef")), age(obj, now)]


def _parent(parent: Object | None) -> str:
    if parent is None:
        return NONE
    resource, group = parent.get("resource", ""), parent.get("group", "")
    qualified = f"{resource}.{group}" if group else resource
    parts = [qualified.lower(), parent.get("namespace", ""), parent.get("name", "")]
    return "/".join(part for part in parts if part)


def _service_cidr(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], ",".join(obj["spec"].get("cidrs") or ()), age(obj, now)]


def _endpoint_slice(obj: Object, now: float) -> Cells:
    ports = [_port(port) for port in obj.get("ports") or ()]
    addresses = [each for it in obj.get("endpoints") or () for each in it.get("addresses") or ()]
    return [
        obj["metadata"]["name"],
        obj.get("addressType", ""),
        _first(ports),
        _first(addresses),
        age(obj, now),
    ]


def _port(port: Object) -> str:
    return str(port["port"]) if "port" in port else str(port.get("name", "*"))


def _first(texts: list[str]) -> str:
    shown = ",".join(texts[:_SHOWN])
    if len(texts) > _SHOWN:
        return f"{shown} + {len(texts) - _SHOWN} more..."
    return shown or UNSET


def _api_service(obj: Object, now: float) -> Cells:
    service = obj["spec"].get("service")
    where = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    return [obj["metadata"]["name"], where, _available(obj), age(obj, now)]


def _available(obj: Object) -> str:
    for each in obj["status"].get("conditions") or ():
        if each.get("type") == "Available":
            status = str(each.get("status", ""))
            reason = each.get("reason")
            return f"{status} ({reason})" if reason and status != "True" else status
    return "Unknown"


INGRESSES = Columns((NAME, *strings("Class", "Hosts", "Address", "Ports", "Age")), _ingress)
INGRESS_CLASSES = Columns((NAME, *strings("Controller", "Parameters", "Age")), _ingress_class)
NETWORK_POLICIES = Columns((NAME, *strings("Pod-Selector", "Age")), _network_policy)
IP_ADDRESSES = Columns((NAME, *strings("ParentRef")), _address)
SERVICE_CIDRS = Columns((NAME, *strings("CIDRs", "Age")), _service_cidr)
ENDPOINT_SLICES = Columns(
    (NAME, *strings("AddressType", "Ports", "Endpoints", "Age")), _endpoint_slice
)
API_SERVICES = Columns((NAME, *strings("Service", "Available", "Age")), _api_service)


_SHOWN = 3


def _endpoints(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], _listed(list(_addresses(obj))), age(obj, now)]


def _listed(addresses: list[str]) -> str:
    shown = ",".join(addresses[:_SHOWN])
    more = len(addresses) - _SHOWN
    return f"{shown} + {more} more..." if more > 0 else shown


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


ENDPOINTS = Columns((NAME, *strings("Endpoints", "Age")), _endpoints)
