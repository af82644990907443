"""Services and Ingresses without a backend, and policies without pods. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.render.severity import Severity
from kvestigate.reports import network
from kvestigate.snapshot import listings


@rule("service-without-endpoints", "A Service has no ready endpoints.", *network.REPORT.needs)
def services_without_endpoints(cluster: Cluster) -> Iterator[Fault]:
    completed = [
        pod.metadata for pod in cluster.of(listings.PODS) if pod.status.phase == "Succeeded"
    ]
    for service in cluster.snapshot.derived(network.collect).services or ():
        if not service.selector or service.ready or service.type == "ExternalName":
            continue
        wanted, namespace = service.selector.items(), service.namespace
        if any(wanted <= pod.labels.items() for pod in completed if pod.namespace == namespace):
            continue  # the pods of this Service have completed
        selector = ",".join(f"{key}={value}" for key, value in sorted(service.selector.items()))
        look = f"kubectl -n {service.namespace} get pods --show-labels"
        if service.not_ready:
            look += f" -l {selector}"
            match = "1 pod matches" if service.not_ready == 1 else f"{service.not_ready} pods match"
            evidence = f"{match} the selector {selector}, but 0 are ready."
        else:
            evidence = f"No pod matches the selector {selector}."
        yield Fault(
            severity=Severity.CRITICAL,
            subject=Subject("Service", service.name, service.namespace),
            evidence=evidence,
            why="The Service has no endpoints: connections to it fail.",
            command=look,
        )


@rule(
    "ingress-backend",
    "An Ingress refers to a Service or port that does not exist.",
    *network.REPORT.needs,
)
def broken_backends(cluster: Cluster) -> Iterator[Fault]:
    for ingress in cluster.snapshot.derived(network.collect).ingresses or ():
        for backend in ingress.backends:
            if backend.problem:
                yield Fault(
                    severity=Severity.CRITICAL,
                    subject=Subject("Ingress", ingress.name, ingress.namespace),
                    evidence=f"{backend.host}{backend.path} routes to "
                    f"{backend.service}:{backend.port}: {backend.problem}",
                    why="The ingress controller answers these requests with an error.",
                    command=f"kubectl -n {ingress.namespace} get services",
                )


@rule("policy-selects-nothing", "A NetworkPolicy selects no pods.", *network.REPORT.needs)
def idle_policies(cluster: Cluster) -> Iterator[Fault]:
    for policy in cluster.snapshot.derived(network.collect).policies or ():
        if not policy.selected and policy.selector:
            yield Fault(
                severity=Severity.WARNING,
                subject=Subject("NetworkPolicy", policy.name, policy.namespace),
                evidence=f"No pod matches the selector {policy.selector}.",
                why="The NetworkPolicy has no effect: no pod is protected by it.",
                command=f"kubectl -n {policy.namespace} get pods --show-labels",
            )


RULES = (
    services_without_endpoints,
    broken_backends,
    idle_policies,
)
