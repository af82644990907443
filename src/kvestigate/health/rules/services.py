"""Services that lead nowhere. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from datetime import timedelta
from difflib import SequenceMatcher
from typing import Any

from kvestigate.health.cluster import Cluster, Maker, is_ready, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.kube import selectors
from kvestigate.kube.views.network import Service, ServicePort
from kvestigate.kube.views.pods import ContainerPort
from kvestigate.render.human import listed, since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import Pod

_PROMPT = timedelta(minutes=1)
_SIMILAR = 0.6
"""How alike two values of a label are if one may be a mistyped other."""
_COMPARED = 300
"""Pods that are looked at for it: to compare texts takes long."""
_CLUSTER_DOMAIN = ".svc.cluster.local"


def service_fault(
    service: Service, evidence: str, why: str, severity: Severity = Severity.CRITICAL, **more: Any
) -> Fault:
    meta = service.metadata
    return Fault(
        severity=severity,
        subject=subject_of("Service", meta),
        evidence=evidence,
        why=why,
        **{"command": f"kubectl -n {meta.namespace} describe service {meta.name}", **more},
    )


def live_services(cluster: Cluster) -> Iterator[Service]:
    for service in cluster.of(listings.SERVICES):
        if service.metadata.deletion_timestamp is None:
            yield service


def selecting(cluster: Cluster) -> Iterator[tuple[Service, tuple[Pod, ...]]]:
    """Services with a selector, and their pods that have not ended."""
    for service in live_services(cluster):
        if service.spec.selector and service.spec.type != "ExternalName":
            yield service, cluster.selected(selector_of(service), service.metadata.namespace)


def selector_of(service: Service) -> selectors.LabelSelector:
    equals = selectors.Operator.EQUALS
    return selectors.LabelSelector(
        tuple(
            selectors.Requirement(key, equals, (value,))
            for key, value in service.spec.selector.items()
        )
    )


@rule(
    "service-without-endpoints",
    "A Service has no ready endpoints.",
    listings.SERVICES,
    listings.ENDPOINT_SLICES,
    listings.PODS,
    uses=(
        listings.DEPLOYMENTS,
        listings.STATEFUL_SETS,
        listings.DAEMON_SETS,
        listings.REPLICA_SETS,
        listings.JOBS,
        listings.CRON_JOBS,
        listings.EVENTS,
    ),
)
def without_endpoints(cluster: Cluster) -> Iterator[Fault]:
    completed = _completed(cluster)
    for service, pods in selecting(cluster):
        if any(is_ready(pod) or service.spec.publish_not_ready_addresses for pod in pods):
            continue
        if _has_ready_endpoint(cluster, service):
            continue  # written by somebody else, or a moment after the pods were read
        selector, namespace = selector_of(service), service.metadata.namespace
        if pods:
            yield _none_ready(cluster, service, pods)
            continue
        if any(selector.matches(labels) for labels in completed.get(namespace, ())):
            continue  # the pods of this Service have completed
        makers = cluster.makers(selector, namespace)
        if makers and not any(maker.wants_pods for maker in makers):
            continue  # scaled to 0 or suspended
        yield _none_matches(cluster, service, [maker for maker in makers if maker.wants_pods])


def _has_ready_endpoint(cluster: Cluster, service: Service) -> bool:
    return any(
        endpoint.conditions.ready is not False
        for each in cluster.slices_of(service)
        for endpoint in each.endpoints
    )


def _completed(cluster: Cluster) -> dict[str, list[dict[str, str]]]:
    """Namespace -> the labels of pods that have succeeded."""
    labels: dict[str, list[dict[str, str]]] = {}
    for pod in cluster.of(listings.PODS):
        if pod.status.phase == "Succeeded":
            labels.setdefault(pod.metadata.namespace, []).append(pod.metadata.labels)
    return labels


def _none_ready(cluster: Cluster, service: Service, pods: Sequence[Pod]) -> Fault:
    match = "1 pod matches" if len(pods) == 1 else f"{len(pods)} pods match"
    selector = selector_of(service)
    created = [pod.metadata.creation_timestamp for pod in pods if pod.metadata.creation_timestamp]
    begin = _unready_since(pods) or min(created, default=None)
    return service_fault(
        service,
        f"{match} the selector {selector}, but 0 are ready: "
        f"{listed([pod.metadata.name for pod in pods])}.",
        "The Service has no endpoints: connections to it fail.",
        since=begin,
        command=f"kubectl -n {service.metadata.namespace} get pods --show-labels -l '{selector}'",
        causes=tuple(subject_of("Pod", pod.metadata) for pod in pods),
        only_as_effect=begin is not None
        and not cluster.settled(begin)
        and not any(_fails_its_probe(cluster, pod) for pod in pods),
    )


def _fails_its_probe(cluster: Cluster, pod: Pod) -> bool:
    """Whether the pod has started, and its readiness probe has failed."""
    events = cluster.events(subject_of("Pod", pod.metadata), "Unhealthy")
    return any(event.message.startswith("Readiness probe") for event in events)


def _unready_since(pods: Sequence[Pod]) -> Any:
    times = [
        one.last_transition_time
        for pod in pods
        for one in pod.status.conditions
        if one.type == "Ready" and one.last_transition_time is not None
    ]
    return max(times, default=None)


def _none_matches(cluster: Cluster, service: Service, makers: Sequence[Maker]) -> Fault:
    selector = selector_of(service)
    namespace = service.metadata.namespace
    if makers:
        subjects = [maker.subject for maker in makers]
        return service_fault(
            service,
            f"No pod of {listed([str(subject) for subject in subjects])} exists (selector "
            f"{selector}).",
            "The Service has no endpoints: connections to it fail.",
            causes=tuple(subjects),
            only_as_effect=not cluster.settled(service.metadata.creation_timestamp),
        )
    return service_fault(
        service,
        f"No pod matches the selector {selector}{_nearest(cluster, service)}.",
        "The Service has no endpoints: connections to it fail.",
        since=service.metadata.creation_timestamp,
        command=f"kubectl -n {namespace} get pods --show-labels",
    )


def _similarity(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _nearest(cluster: Cluster, service: Service) -> str:
    """The pod whose labels differ least from the selector; none if they differ in everything."""
    wanted = service.spec.selector
    best, most = None, _SIMILAR
    for pod in cluster.pods_in(service.metadata.namespace)[:_COMPARED]:
        similar = max(_similarity(pod.metadata.labels.get(key, ""), wanted[key]) for key in wanted)
        equal = len(wanted.items() & pod.metadata.labels.items())
        if equal + similar > most:
            best, most = pod, equal + similar
    if best is None:
        return ""
    labels = best.metadata.labels
    differing = [
        f"{key}={labels[key]}" if key in labels else f"no label {key}"
        for key, value in sorted(wanted.items())
        if labels.get(key) != value
    ]
    return f"; pod {best.metadata.name} has {', '.join(differing)}"


@rule(
    "service-target-port",
    "A Service refers to a port that its pods do not have.",
    listings.SERVICES,
    listings.PODS,
)
def target_ports(cluster: Cluster) -> Iterator[Fault]:
    for service, pods in selecting(cluster):
        for port in service.spec.ports if pods else ():
            problem = _port_problem(port, pods)
            if problem:
                missing_name = isinstance(port.target_port, str)
                yield service_fault(
                    service,
                    f"Port {port.name or port.port} has targetPort {port.target_port or port.port}"
                    f"/{port.protocol}, but {problem}.",
                    f"Connections to port {port.port} of the Service fail.",
                    Severity.CRITICAL if missing_name else Severity.WARNING,
                )


def _port_problem(port: ServicePort, pods: Sequence[Pod]) -> str:
    target = port.target_port or port.port
    specs = {id(pod.spec.containers): pod for pod in pods}
    lacking = [pod for pod in specs.values() if _lacks_port(pod, target, port.protocol)]
    if len(lacking) < len(specs):
        return ""
    pod = lacking[0]
    declared = [f"{_named(one)}{one.container_port}/{one.protocol}" for one in _ports(pod)]
    other = [one for one in _ports(pod) if target in (one.name, one.container_port)]
    if other:
        return f"the pods declare it with protocol {other[0].protocol}"
    if not declared:
        return f"no container of pod {pod.metadata.name} declares a port"
    return f"the containers of pod {pod.metadata.name} declare {listed(declared, 5)}"


def _named(port: ContainerPort) -> str:
    return f"{port.name}=" if port.name else ""


def _ports(pod: Pod) -> list[ContainerPort]:
    """Those of containers that run as long as the pod."""
    sidecars = [one for one in pod.spec.init_containers if one.restart_policy == "Always"]
    return [port for one in (*pod.spec.containers, *sidecars) for port in one.ports]


def _lacks_port(pod: Pod, target: int | str, protocol: str) -> bool:
    """A number is only missed if every container says which ports it has."""
    ports = [one for one in _ports(pod) if one.protocol == protocol]
    if isinstance(target, str):
        return not any(one.name == target for one in ports)
    if any(one.container_port == target for one in ports):
        return False
    silent = any(not container.ports for container in pod.spec.containers)
    return not silent and target not in _probed(pod)


def _probed(pod: Pod) -> set[int | str]:
    """The ports that probes connect to: something listens there, declared or not."""
    probed: set[int | str] = set()
    for container in pod.spec.containers:
        for probe in (container.readiness_probe, container.liveness_probe):
            for handler in (probe.http_get, probe.tcp_socket, probe.grpc) if probe else ():
                if handler is not None:
                    probed.add(handler.port)
    return probed


@rule(
    "service-external-name",
    "The ExternalName of a Service cannot be resolved.",
    listings.SERVICES,
    uses=(listings.NAMESPACES,),
)
def external_names(cluster: Cluster) -> Iterator[Fault]:
    for service in live_services(cluster):
        if service.spec.type == "ExternalName":
            problem = _name_problem(cluster, service.spec.external_name)
            if problem:
                yield service_fault(
                    service,
                    f"externalName {service.spec.external_name!r} {problem}.",
                    "The name of the Service does not resolve: connections to it fail.",
                    causes=_named_service(service.spec.external_name),
                )


def _name_problem(cluster: Cluster, name: str) -> str:
    if not name:
        return "is empty"
    if _is_address(name):
        return "is an IP address: DNS answers with a CNAME record, which must be a name"
    for namespace, service in _inside(name):
        if cluster.lacks(listings.SERVICES, service, namespace):
            return f"is Service {namespace}/{service}, which does not exist"
    return ""


def _named_service(name: str) -> tuple[Subject, ...]:
    return tuple(Subject("Service", service, namespace) for namespace, service in _inside(name))


def _inside(name: str) -> Iterator[tuple[str, str]]:
    """The (namespace, name) of the Service that `db.shop.svc.cluster.local` is."""
    stem = name.rstrip(".")
    if stem.endswith(_CLUSTER_DOMAIN):
        words = stem.removesuffix(_CLUSTER_DOMAIN).split(".")
        if len(words) == 2:
            yield words[1], words[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@rule(
    "load-balancer-pending",
    "A Service of type LoadBalancer has no address.",
    listings.SERVICES,
    uses=(listings.NODES, listings.EVENTS),
)
def load_balancers(cluster: Cluster) -> Iterator[Fault]:
    clouds = {node.spec.provider_id.partition(":")[0] for node in cluster.of(listings.NODES)}
    own = cluster.knows(listings.NODES) and not clouds - {""}
    for service in live_services(cluster):
        meta = service.metadata
        if service.spec.type != "LoadBalancer" or service.status.load_balancer.ingress:
            continue
        subject = subject_of("Service", meta)
        failed = cluster.events(
            subject, "SyncLoadBalancerFailed", "CreatingLoadBalancerFailed", "AllocationFailed"
        )
        if not failed and not cluster.settled(
            meta.creation_timestamp, _PROMPT if own else timedelta(minutes=5)
        ):
            continue
        yield service_fault(
            service,
            f"The Service has no external address{since_when(meta.creation_timestamp)}: "
            + (
                f"{failed[0].reason}: {failed[0].message}"
                if failed
                else _no_balancer(service, own=own)
            ),
            "Clients outside the cluster cannot reach the Service.",
            since=meta.creation_timestamp,
        )


def _no_balancer(service: Service, *, own: bool) -> str:
    name = service.spec.load_balancer_class
    if name:
        return f"no controller for loadBalancerClass {name} has assigned one (pending)."
    if own:
        return (
            "no load balancer controller has assigned one (pending); the nodes belong to no cloud "
            "provider."
        )
    return "the cloud provider has not assigned one (pending)."


RULES = (
    without_endpoints,
    target_ports,
    external_names,
    load_balancers,
)
