"""Objects of the core and of the network as a snapshot keeps them."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from kvestigate.kube.views import core, network, policy
from kvestigate.kube.views.core import EventSeries
from kvestigate.kube.views.meta import CondensedMetadata, LabelSelector, Metadata, View
from kvestigate.kube.views.pods import Presence
from kvestigate.snapshot.meta import FieldsManager, WrittenMeta


class NodeSpecFields(View, frozen=True):
    """Which fields of the spec a client wrote."""

    unschedulable: Presence | None = field(name="f:unschedulable", default=None)
    taints: Presence | None = field(name="f:taints", default=None)


class NodeFields(View, frozen=True):
    spec: NodeSpecFields = field(name="f:spec", default=NodeSpecFields())


class NodeWriter(FieldsManager, frozen=True):
    fields: NodeFields = field(name="fieldsV1", default=NodeFields())


class NodeMeta(Metadata, frozen=True):
    managed_fields: tuple[NodeWriter, ...] = ()


class Node(core.Node, frozen=True):
    """With who cordoned it."""

    metadata: NodeMeta = NodeMeta()


class SecretData(View, frozen=True):
    """The certificate of a TLS Secret; its key is never decoded."""

    certificate: str = field(name="tls.crt", default="")


class TlsSecret(View, frozen=True):
    metadata: CondensedMetadata = CondensedMetadata()
    data: SecretData = SecretData()


class EventSource(View, frozen=True):
    component: str = ""


class About(View, frozen=True):
    """The object that an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    field_path: str = ""


class Event(View, frozen=True):
    metadata: CondensedMetadata = CondensedMetadata()
    involved_object: About = About()
    reason: str = ""
    message: str = ""
    count: int = 0
    source: EventSource = EventSource()
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: EventSeries | None = None

    @property
    def times(self) -> int:
        """How often it was reported."""
        return max(self.count, self.series.count if self.series is not None else 0, 1)

    @property
    def last_seen(self) -> datetime | None:
        newest = self.series.last_observed_time if self.series is not None else None
        return newest or self.last_timestamp or self.event_time or self.metadata.creation_timestamp


class IngressTls(View, frozen=True):
    hosts: tuple[str, ...] = ()
    secret_name: str = ""


class IngressSpec(network.IngressSpec, frozen=True):
    tls: tuple[IngressTls, ...] = ()


class Ingress(network.Ingress, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: IngressSpec = IngressSpec()
    status: network.ServiceStatus = network.ServiceStatus()


class IpBlock(View, frozen=True):
    cidr: str = ""


class PolicyPeer(View, frozen=True):
    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    ip_block: IpBlock | None = None


class PolicyPort(View, frozen=True):
    port: int | str | None = None
    end_port: int | None = None
    protocol: str = "TCP"


class EgressRule(View, frozen=True):
    """Everywhere if `to` is empty, on every port if `ports` is."""

    to: tuple[PolicyPeer, ...] = ()
    ports: tuple[PolicyPort, ...] = ()


class IngressRule(View, frozen=True):
    from_: tuple[PolicyPeer, ...] = field(name="from", default=())
    ports: tuple[PolicyPort, ...] = ()


class NetworkPolicySpec(network.NetworkPolicySpec, frozen=True):
    egress: tuple[EgressRule, ...] = ()
    ingress: tuple[IngressRule, ...] = ()


class NetworkPolicy(network.NetworkPolicy, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
    spec: NetworkPolicySpec = NetworkPolicySpec()


class PodDisruptionBudget(policy.PodDisruptionBudget, frozen=True):
    metadata: WrittenMeta = WrittenMeta()
