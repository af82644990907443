"""Advice about what is open to others: load balancers, plain HTTP, old tokens, namespaces. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.health.cluster import Cluster, subject_of
from kvestigate.health.model import Fault, Profile, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.podsecurity import SYSTEM
from kvestigate.render.human import listed
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings

_TOKEN_OF = "kubernetes.io/service-account.name"
_ENFORCE = "pod-security.kubernetes.io/enforce"
_INTERNAL = (
    "networking.gke.io/load-balancer-type",
    "cloud.google.com/load-balancer-type",
    "service.beta.kubernetes.io/aws-load-balancer-internal",
    "service.beta.kubernetes.io/aws-load-balancer-scheme",
    "service.beta.kubernetes.io/azure-load-balancer-internal",
    "service.beta.kubernetes.io/openstack-internal-load-balancer",
)
_NOT_INTERNAL = ("false", "External", "internet-facing")
_SOURCES = "service.beta.kubernetes.io/load-balancer-source-ranges"


@rule(
    "load-balancer-open",
    "A load balancer accepts connections from everywhere.",
    listings.SERVICES,
    profile=Profile.SECURITY,
    strict=True,
)
def open_load_balancers(cluster: Cluster) -> Iterator[Fault]:
    for service in cluster.of(listings.SERVICES):
        meta, spec = service.metadata, service.spec
        internal = any(
            meta.annotations.get(name, "false") not in _NOT_INTERNAL for name in _INTERNAL
        )
        limited = internal or bool(spec.load_balancer_source_ranges) or _SOURCES in meta.annotations
        if spec.type != "LoadBalancer" or limited or meta.namespace in SYSTEM:
            continue
        ports = [str(port.port) for port in spec.ports]
        yield Fault(
            severity=Severity.INFO,
            subject=subject_of("Service", meta),
            evidence=f"The load balancer accepts connections to port {listed(ports)} from every "
            "address (0.0.0.0/0): loadBalancerSourceRanges is empty.",
            why="Whoever reaches the address of the load balancer reaches the pods.",
            command=f"kubectl -n {meta.namespace} get service {meta.name} -o yaml",
        )


@rule(
    "ingress-plain",
    "An Ingress serves a host without TLS.",
    listings.INGRESSES,
    profile=Profile.SECURITY,
    strict=True,
)
def plain_ingresses(cluster: Cluster) -> Iterator[Fault]:
    for ingress in cluster.of(listings.INGRESSES):
        meta, spec = ingress.metadata, ingress.spec
        hosts = [rule.host or "*" for rule in spec.rules]
        covered = {host for tls in spec.tls for host in tls.hosts}
        plain = [host for host in hosts if host not in covered]
        if plain and not any(not tls.hosts for tls in spec.tls):
            yield Fault(
                severity=Severity.INFO,
                subject=subject_of("Ingress", meta),
                evidence=f"Host {listed(plain)} is served without TLS (spec.tls does not name it).",
                why="Requests and answers, passwords among them, travel as plain HTTP.",
                command=f"kubectl -n {meta.namespace} get ingress {meta.name} -o yaml",
            )


@rule(
    "token-secret",
    "A Secret holds a token of a ServiceAccount that never expires.",
    listings.SECRETS,
    profile=Profile.SECURITY,
    strict=True,
)
def token_secrets(cluster: Cluster) -> Iterator[Fault]:
    for secret in cluster.of(listings.SECRETS):
        meta = secret.metadata
        account = meta.annotations.get(_TOKEN_OF, "")
        if account and meta.namespace not in SYSTEM:
            yield Fault(
                severity=Severity.INFO,
                subject=subject_of("Secret", meta),
                evidence=f"It holds a token of ServiceAccount {meta.namespace}/{account} that "
                "never expires.",
                why="Whoever once read the Secret keeps the rights of the ServiceAccount; "
                "`kubectl create token` makes tokens that expire.",
                command=f"kubectl -n {meta.namespace} describe secret {meta.name}",
                since=meta.creation_timestamp,
            )


@rule(
    "namespace-open",
    "A namespace has no NetworkPolicy or enforces no Pod Security Standard.",
    listings.NAMESPACES,
    listings.NETWORK_POLICIES,
    profile=Profile.SECURITY,
    strict=True,
)
def open_namespaces(cluster: Cluster) -> Iterator[Fault]:
    guarded = {policy.metadata.namespace for policy in cluster.of(listings.NETWORK_POLICIES)}
    only = cluster.snapshot.namespace
    for namespace in cluster.of(listings.NAMESPACES):
        name, labels = namespace.metadata.name, namespace.metadata.labels
        if name in SYSTEM or (only and name != only) or namespace.metadata.deletion_timestamp:
            continue
        lacks = []
        if name not in guarded:
            lacks.append("no NetworkPolicy selects its pods")
        if _ENFORCE not in labels:
            lacks.append(f"no Pod Security Standard is enforced (label {_ENFORCE})")
        if lacks:
            text = "; ".join(lacks)
            yield Fault(
                severity=Severity.INFO,
                subject=Subject("Namespace", name),
                evidence=f"{text[:1].upper()}{text[1:]}.",
                why="Every pod of the cluster may connect to its pods, or its pods may take over "
                "their node (CIS 5.3.2, 5.2.1).",
                command=f"kubectl get namespace {name} -o yaml",
            )


RULES = (open_load_balancers, plain_ingresses, token_secrets, open_namespaces)
