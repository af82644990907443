"""Services, what stands behind them, and who may talk to whom."""

from __future__ import annotations

from msgspec import field

from kvestigate.kube.views.meta import LabelSelector, Metadata, ObjectReference, View


class ServicePort(View, frozen=True):
    name: str = ""
    protocol: str = "TCP"
    port: int = 0
    target_port: int | str = 0
    node_port: int = 0


class ServiceSpec(View, frozen=True):
    type: str = ""
    selector: dict[str, str] = field(default_factory=dict)
    """Empty: the endpoints are made by somebody else."""
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = field(name="clusterIP", default="")
    """`None` for a headless service."""
    cluster_ips: tuple[str, ...] = field(name="clusterIPs", default=())
    external_ips: tuple[str, ...] = field(name="externalIPs", default=())
    external_name: str = ""
    publish_not_ready_addresses: bool = False
    session_affinity: str = ""
    """`ClientIP`: one client, always the same endpoint."""
    external_traffic_policy: str = ""
    internal_traffic_policy: str = ""
    """`Local`: a node sends traffic only to endpoints of its own."""
    load_balancer_class: str = ""
    load_balancer_source_ranges: tuple[str, ...] = ()
    """Who may connect; empty: everybody."""


class LoadBalancerIngress(View, frozen=True):
    ip: str = ""
    hostname: str = ""


class LoadBalancerStatus(View, frozen=True):
    ingress: tuple[LoadBalancerIngress, ...] = ()


class ServiceStatus(View, frozen=True):
    load_balancer: LoadBalancerStatus = LoadBalancerStatus()


class Service(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


class EndpointAddress(View, frozen=True):
    ip: str = ""
    hostname: str = ""
    node_name: str = ""
    target_ref: ObjectReference | None = None


class EndpointPort(View, frozen=True):
    name: str = ""
    port: int = 0
    protocol: str = "TCP"


class EndpointSubset(View, frozen=True):
    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(View, frozen=True):
    metadata: Metadata = Metadata()
    subsets: tuple[EndpointSubset, ...] = ()


class EndpointConditions(View, frozen=True):
    """None is to be read as true, except for `terminating`."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(View, frozen=True):
    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    hostname: str = ""
    node_name: str = ""
    zone: str = ""
    target_ref: ObjectReference | None = None


class EndpointSlice(View, frozen=True):
    """The label `kubernetes.io/service-name` says whose it is."""

    metadata: Metadata = Metadata()
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class ServiceBackendPort(View, frozen=True):
    name: str = ""
    number: int = 0


class IngressServiceBackend(View, frozen=True):
    name: str = ""
    port: ServiceBackendPort = ServiceBackendPort()


class IngressBackend(View, frozen=True):
    service: IngressServiceBackend | None = None


class IngressPath(View, frozen=True):
    path: str = ""
    path_type: str = ""
    backend: IngressBackend = IngressBackend()


class IngressHttp(View, frozen=True):
    paths: tuple[IngressPath, ...] = ()


class IngressRule(View, frozen=True):
    host: str = ""
    """Empty: all hosts."""
    http: IngressHttp = IngressHttp()


class IngressSpec(View, frozen=True):
    ingress_class_name: str = ""
    default_backend: IngressBackend | None = None
    rules: tuple[IngressRule, ...] = ()


class Ingress(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: IngressSpec = IngressSpec()


class NetworkPolicySpec(View, frozen=True):
    pod_selector: LabelSelector = LabelSelector()
    policy_types: tuple[str, ...] = ()


class NetworkPolicy(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: NetworkPolicySpec = NetworkPolicySpec()
