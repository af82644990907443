"""Endpoints of Services: made by hand, left behind, never written, or on the wrong nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from kvestigate.health.cluster import SERVICE_LABEL, Cluster, is_ready, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.services import live_services, selecting, service_fault
from kvestigate.render.human import listed
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import is_ready as is_node_ready

_PROMPT = timedelta(minutes=1)
_MANAGER = Subject("Lease", "kube-controller-manager", "kube-system")


@rule(
    "service-endpoints-by-hand",
    "A Service without a selector has no endpoints.",
    listings.SERVICES,
    listings.ENDPOINT_SLICES,
)
def endpoints_by_hand(cluster: Cluster) -> Iterator[Fault]:
    for service in live_services(cluster):
        meta, spec = service.metadata, service.spec
        if spec.selector or spec.type == "ExternalName" or not spec.ports:
            continue
        own = cluster.slices_of(service)
        if not any(one.endpoints for one in own):
            headless = spec.cluster_ip == "None"
            if not headless and cluster.settled(meta.creation_timestamp, _PROMPT):
                yield service_fault(
                    service,
                    "The Service has no selector, and no EndpointSlice or Endpoints of its name "
                    "has an address.",
                    "The Service has no endpoints: connections to it fail.",
                    since=meta.creation_timestamp,
                )
            continue
        offered = {port.name for one in own for port in one.ports if one.endpoints}
        lost = [port.name or str(port.port) for port in spec.ports if port.name not in offered]
        if lost and offered:
            names = sorted(name or "(no name)" for name in offered)
            yield service_fault(
                service,
                f"Its endpoints, made by hand, have no port named {listed(lost)}; they have "
                f"{listed(names)}.",
                "Connections to these ports of the Service fail: ports are matched by name.",
            )


@rule(
    "endpoints-left",
    "An EndpointSlice belongs to no Service.",
    listings.SERVICES,
    listings.ENDPOINT_SLICES,
)
def left(cluster: Cluster) -> Iterator[Fault]:
    for one in cluster.of(listings.ENDPOINT_SLICES):
        meta = one.metadata
        name = meta.labels.get(SERVICE_LABEL, "")
        if meta.deletion_timestamp is not None or not cluster.settled(
            meta.creation_timestamp, _PROMPT
        ):
            continue
        if name and not cluster.lacks(listings.SERVICES, name, meta.namespace):
            continue
        cause = (
            f"Service {meta.namespace}/{name} (label {SERVICE_LABEL}) does not exist"
            if name
            else f"it has no label {SERVICE_LABEL}"
        )
        yield Fault(
            severity=Severity.WARNING,
            subject=subject_of("EndpointSlice", meta),
            evidence=f"The EndpointSlice belongs to no Service: {cause}.",
            why="No Service sends traffic to these endpoints.",
            command=f"kubectl -n {meta.namespace} get endpointslice {meta.name} -o yaml",
        )


@rule(
    "endpoints-not-written",
    "Ready pods of a Service are in no EndpointSlice.",
    listings.SERVICES,
    listings.PODS,
    listings.ENDPOINT_SLICES,
)
def not_written(cluster: Cluster) -> Iterator[Fault]:
    for service, pods in selecting(cluster):
        meta = service.metadata
        ready = [pod for pod in pods if is_ready(pod)]
        old = [pod for pod in ready if cluster.settled(pod.metadata.creation_timestamp)]
        if not old or not cluster.settled(meta.creation_timestamp):
            continue
        if not any(one.endpoints for one in cluster.slices_of(service)):
            yield service_fault(
                service,
                f"{len(ready)} of its pods are ready, but no EndpointSlice of the Service has an "
                "address.",
                "Connections to the Service fail: the EndpointSlice controller does not work.",
                # A named port that no pod has also leaves a Service without addresses.
                causes=(_MANAGER, subject_of("Service", meta)),
            )


@rule(
    "service-local-traffic",
    "Nodes drop the traffic of a Service because they have no endpoint of it.",
    listings.SERVICES,
    listings.PODS,
    listings.NODES,
    strict=True,
)
def local_traffic(cluster: Cluster) -> Iterator[Fault]:
    nodes = {node.metadata.name for node in cluster.of(listings.NODES) if is_node_ready(node)}
    for service, pods in selecting(cluster):
        spec = service.spec
        outside = spec.type == "NodePort" and spec.external_traffic_policy == "Local"
        if not outside and spec.internal_traffic_policy != "Local":
            continue
        served = {pod.spec.node_name for pod in pods if is_ready(pod)}
        without = sorted(nodes - served)
        if served and without:
            policy = "externalTrafficPolicy" if outside else "internalTrafficPolicy"
            yield service_fault(
                service,
                f"{policy} is Local, and {len(without)} of {len(nodes)} nodes have no ready "
                f"endpoint: {listed(without)}.",
                "Connections through these nodes are dropped.",
                Severity.WARNING,
            )


RULES = (endpoints_by_hand, left, not_written, local_traffic)
