"""The kubelet, container or address that a request is for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import ApiError, BadRequest, NotFound

NODES = ("", "nodes")
KUBELET_PORT = 10250
ADDRESS_TYPES = ("InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname")
"""In order of preference. kube-apiserver prefers host names; embedded nodes have none in DNS."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    tls: bool = True

    def __str__(self) -> str:
        return _url(self.host, self.port, self.tls)


@dataclass(frozen=True, slots=True)
class Kubelet:
    """The kubelet of a node: both sides show certificates of the CA of the plane's kubelets."""

    node: str
    host: str
    port: int
    """Host and port are what the Node object says."""

    def __str__(self) -> str:
        return _url(self.host, self.port, True)


@dataclass(frozen=True, slots=True)
class Outside:
    """A server outside the cluster: a webhook with a URL."""

    host: str
    port: int
    ca: bytes | None = None
    """The CA to verify its certificate with, as PEM; None: the CAs of the system."""


@dataclass(frozen=True, slots=True)
class PodPort:
    """A port of a pod, reached through the kubelet of its node."""

    kubelet: Kubelet
    namespace: str
    pod: str
    uid: str
    host: str
    """The pod's IP address, or else its name; sent in the Host header."""
    port: int
    tls: bool = False

    def __str__(self) -> str:
        return _url(self.host, self.port, self.tls)


@dataclass(frozen=True, slots=True)
class Known:
    """A server in the cluster whose certificate is verified: a webhook behind a Service."""

    at: Address | PodPort
    name: str
    """The host name that its certificate must have."""
    ca: bytes | None = None


def _url(host: str, port: int, tls: bool) -> str:
    host = f"[{host}]" if ":" in host else host
    return f"http{'s' if tls else ''}://{host}:{port}"


def kubelet_of(state: PlaneState, node: str, *, as_kind: str = "nodes") -> Kubelet:
    """The kubelet of a node. The error for a missing node names `as_kind`."""
    item = state.get(NODES, "", node)
    if item is None:
        raise NotFound(f'{as_kind} "{node}" not found', details={"name": node, "kind": as_kind})
    status = objects.read(item).get("status") or {}
    addresses = status.get("addresses") or ()
    by_type = {address["type"]: address["address"] for address in reversed(addresses)}
    for type_ in ADDRESS_TYPES:
        if type_ in by_type:
            endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
            port = endpoint.get("Port") or KUBELET_PORT
            return Kubelet(node, by_type[type_], port)
    raise ApiError(f"no preferred addresses found; known addresses: {list(addresses)}")


def container_of(pod: Object, requested: str) -> str:
    """The requested container, or the only one of the pod; BadRequest if there is none."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    containers = {
        field: [container["name"] for container in spec.get(field) or ()]
        for field in ("initContainers", "containers", "ephemeralContainers")
    }
    choices = [container for names in containers.values() for container in names]
    if requested:
        if requested not in choices:
            raise BadRequest(f"container {requested} is not valid for pod {name}")
        return requested
    if len(containers["containers"]) == 1:
        only: str = containers["containers"][0]
        return only
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
