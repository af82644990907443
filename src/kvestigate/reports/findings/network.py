"""Requests that arrive nowhere, and policies that guard nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.render.severity import Severity
from kvestigate.reports import network
from kvestigate.reports.findings.model import Finding, Rule, Subject
from kvestigate.snapshot import listings
from kvestigate.snapshot.snapshot import Snapshot


def services_without_endpoints(snapshot: Snapshot) -> Iterator[Finding]:
    done = [pod.metadata for pod in snapshot.of(listings.PODS) if pod.status.phase == "Succeeded"]
    for service in snapshot.derived(network.collect).services:
        if not service.selector or service.ready or service.type == "ExternalName":
            continue
        wanted, namespace = service.selector.items(), service.namespace
        if any(wanted <= pod.labels.items() for pod in done if pod.namespace == namespace):
            continue  # it served a job that has ended
        selector = ",".join(f"{key}={value}" for key, value in sorted(service.selector.items()))
        look = f"kubectl -n {service.namespace} get pods --show-labels"
        if service.not_ready:
            look += f" -l {selector}"
            who = "a pod matches" if service.not_ready == 1 else f"{service.not_ready} pods match"
            seen = f"{who} {selector}, and none is ready"
        else:
            seen = f"no pod matches its selector {selector}"
        yield Finding(
            rule="service-without-endpoints",
            severity=Severity.CRITICAL,
            subject=Subject("Service", service.name, service.namespace),
            evidence=seen,
            why="connections to it are refused",
            command=look,
        )


def broken_backends(snapshot: Snapshot) -> Iterator[Finding]:
    for ingress in snapshot.derived(network.collect).ingresses:
        for backend in ingress.backends:
            if backend.problem:
                yield Finding(
                    rule="ingress-backend",
                    severity=Severity.CRITICAL,
                    subject=Subject("Ingress", ingress.name, ingress.namespace),
                    evidence=f"{backend.host}{backend.path} leads to "
                    f"{backend.service}:{backend.port}: {backend.problem}",
                    why="requests there get an error of the ingress controller",
                    command=f"kubectl -n {ingress.namespace} get services",
                )


def idle_policies(snapshot: Snapshot) -> Iterator[Finding]:
    for policy in snapshot.derived(network.collect).policies:
        if not policy.selected and policy.selector:
            yield Finding(
                rule="policy-selects-nothing",
                severity=Severity.WARNING,
                subject=Subject("NetworkPolicy", policy.name, policy.namespace),
                evidence=f"no pod matches its selector {policy.selector}",
                why="what it was meant to guard is open, or gone",
                command=f"kubectl -n {policy.namespace} get pods --show-labels",
            )


RULES = (
    Rule(
        "service-without-endpoints",
        "Nothing ready stands behind a Service.",
        network.REPORT.needs,
        services_without_endpoints,
    ),
    Rule(
        "ingress-backend",
        "An Ingress leads to a Service or port that does not exist.",
        network.REPORT.needs,
        broken_backends,
    ),
    Rule(
        "policy-selects-nothing",
        "A NetworkPolicy selects no pod.",
        network.REPORT.needs,
        idle_policies,
    ),
)
