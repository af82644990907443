"""Which kubelet, container or address a request is for. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import ApiError, BadRequest, NotFound

NODES = ("", "nodes")
KUBELET_PORT = 10250
ADDRESS_TYPES = ("InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname")
"""In order of preference. kube-apiserver begins with names; embedded nodes have none in DNS."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    tls: bool = True
    kubelet: bool = False
    """Whether we show and ask for certificates of the cluster's own CA."""

    def __str__(self) -> str:
        return _url(self.host, self.port, self.tls)


@dataclass(frozen=True, slots=True)
class Outside:
    """A server that is no part of the cluster: a webhook's."""

    host: str
    port: int
    ca: bytes | None = None
    """What it is trusted by, PEM; the system's CAs if there is nothing."""


@dataclass(frozen=True, slots=True)
class PodPort:
    """A port of a pod, reached through its node."""

    kubelet: Address
    namespace: str
    pod: str
    uid: str
    host: str
    """The pod's address, for the Host header; its name if it has none."""
    port: int
    tls: bool = False

    def __str__(self) -> str:
        return _url(self.host, self.port, self.tls)


@dataclass(frozen=True, slots=True)
class Known:
    """A server in the cluster that proves to be who it is: a webhook's behind a Service."""

    at: Address | PodPort
    name: str
    """In its certificate."""
    ca: bytes | None = None


def _url(host: str, port: int, tls: bool) -> str:
    host = f"[{host}]" if ":" in host else host
    return f"http{'s' if tls else ''}://{host}:{port}"


def kubelet_of(state: PlaneState, node: str, *, as_kind: str = "nodes") -> Address:
    """Where the kubelet of a node listens; a node that is missing is NotFound as `as_kind`."""
    item = state.get(NODES, "", node)
    if item is None:
        raise NotFound(f'{as_kind} "{node}" not found', details={"name": node, "kind": as_kind})
    status = objects.read(item).get("status") or {}
    known = status.get("addresses") or ()
    by_type = {each["type"]: each["address"] for each in reversed(known)}
    for type_ in ADDRESS_TYPES:
        if type_ in by_type:
            endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
            port = endpoint.get("Port") or KUBELET_PORT
            return Address(by_type[type_], port, kubelet=True)
    raise ApiError(f"no preferred addresses found; known addresses: {list(known)}")


def container_of(pod: Object, asked: str) -> str:
    """The container that is meant, when a pod has several or the request names one."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    known = {
        field: [each["name"] for each in spec.get(field) or ()]
        for field in ("initContainers", "containers", "ephemeralContainers")
    }
    if asked:
        if not any(asked in names for names in known.values()):
            raise BadRequest(f"container {asked} is not valid for pod {name}")
        return asked
    if len(known["containers"]) == 1:
        only: str = known["containers"][0]
        return only
    choices = [each for names in known.values() for each in names]
    if not choices:
        raise BadRequest(f"a container name must be specified for pod {name}")
    listed = " ".join(choices)
    raise BadRequest(
        f"a container name must be specified for pod {name}, choose one of: [{listed}]"
    )


def node_of(pod: Object) -> str:
    node: str = pod["spec"].get("nodeName") or ""
    if not node:
        raise BadRequest(f"pod {pod['metadata']['name']} does not have a host assigned")
    return node


def check_proxied(host: str, *, loopback: bool) -> None:
    """Refuse addresses behind which the machine's own or its cloud's services are."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise BadRequest("address not allowed") from None
    if (
        address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or (address.is_loopback and not loopback)
    ):
        raise BadRequest("address not allowed")
