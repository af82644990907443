"""Ingresses: their class, backends, TLS Secrets and conflicts. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any

from kvestigate.health.cluster import Cluster, as_selector, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.certificates import validity
from kvestigate.kube.views.meta import LabelSelector
from kvestigate.kube.views.network import IngressServiceBackend, Service
from kvestigate.render.human import listed
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.objects import Ingress

_CLASS = "kubernetes.io/ingress.class"
_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
_CANARY = "nginx.ingress.kubernetes.io/canary"


def _fault(
    ingress: Ingress, evidence: str, why: str, severity: Severity = Severity.CRITICAL, **more: Any
) -> Fault:
    meta = ingress.metadata
    return Fault(
        severity=severity,
        subject=subject_of("Ingress", meta),
        evidence=evidence,
        why=why,
        **{"command": f"kubectl -n {meta.namespace} describe ingress {meta.name}", **more},
    )


def _live(cluster: Cluster) -> Iterator[Ingress]:
    for ingress in cluster.of(listings.INGRESSES):
        if ingress.metadata.deletion_timestamp is None:
            yield ingress


def _backends(ingress: Ingress) -> Iterator[tuple[str, IngressServiceBackend]]:
    """`shop.test/cart`, and where its requests go."""
    default = ingress.spec.default_backend
    if default is not None and default.service is not None:
        yield "*", default.service
    for each in ingress.spec.rules:
        for path in each.http.paths:
            if path.backend.service is not None:
                yield f"{each.host or '*'}{path.path or '/'}", path.backend.service


@rule(
    "ingress-backend",
    "An Ingress refers to a Service or port that does not exist.",
    listings.INGRESSES,
    listings.SERVICES,
)
def broken_backends(cluster: Cluster) -> Iterator[Fault]:
    for ingress in _live(cluster):
        namespace = ingress.metadata.namespace
        for route, to in _backends(ingress):
            service = cluster.find(listings.SERVICES, to.name, namespace)
            target = f"{to.name}:{to.port.name or to.port.number}"
            if service is not None:
                problem = _port_problem(service, to)
            elif cluster.lacks(listings.SERVICES, to.name, namespace):
                problem = f"Service {namespace}/{to.name} does not exist"
            else:
                continue
            if problem:
                yield _fault(
                    ingress,
                    f"{route} routes to {target}: {problem}.",
                    "The ingress controller answers these requests with an error.",
                    command=f"kubectl -n {namespace} get services",
                )


def _port_problem(service: Service, to: IngressServiceBackend) -> str:
    ports = service.spec.ports
    wanted = to.port.name or to.port.number
    if any(wanted in (port.name, port.port) for port in ports):
        return ""
    if service.spec.type == "ExternalName" and not ports:
        return ""
    offered = [f"{port.name}={port.port}" if port.name else str(port.port) for port in ports]
    return f"Service {to.name} has no port {wanted}; it has {listed(offered, 5)}"


@rule(
    "ingress-without-endpoints",
    "An Ingress routes to a Service that does not answer.",
    listings.INGRESSES,
    listings.SERVICES,
)
def silent_backends(cluster: Cluster) -> Iterator[Fault]:
    """Only told as the effect of what is wrong with the Service."""
    for ingress in _live(cluster):
        namespace = ingress.metadata.namespace
        for name in dict.fromkeys(to.name for _, to in _backends(ingress)):
            if cluster.find(listings.SERVICES, name, namespace) is not None:
                yield _fault(
                    ingress,
                    f"It routes to Service {namespace}/{name}, which does not answer.",
                    "The ingress controller answers these requests with an error.",
                    causes=(Subject("Service", name, namespace),),
                    only_as_effect=True,
                )


@rule(
    "ingress-scaled-to-zero",
    "An Ingress routes to a workload that is scaled to 0.",
    listings.INGRESSES,
    listings.SERVICES,
    listings.DEPLOYMENTS,
    listings.STATEFUL_SETS,
    listings.ENDPOINT_SLICES,
    strict=True,
)
def scaled_to_zero(cluster: Cluster) -> Iterator[Fault]:
    """Often on purpose: at night, or until the first request comes."""
    for ingress in _live(cluster):
        namespace = ingress.metadata.namespace
        for name in dict.fromkeys(to.name for _, to in _backends(ingress)):
            service = cluster.find(listings.SERVICES, name, namespace)
            if service is None or not service.spec.selector:
                continue
            makers = cluster.makers(as_selector(LabelSelector(service.spec.selector)), namespace)
            idle = [maker.subject for maker in makers if not maker.wants_pods]
            if idle and len(idle) == len(makers) and not cluster.ready_endpoints(name, namespace):
                yield _fault(
                    ingress,
                    f"It routes to Service {namespace}/{name}, whose {idle[0].kind} "
                    f"{idle[0].name} is scaled to 0 replicas.",
                    "The ingress controller answers these requests with an error.",
                    Severity.INFO,
                    alike=name,
                )


@rule(
    "ingress-class",
    "No controller serves an Ingress.",
    listings.INGRESSES,
    listings.INGRESS_CLASSES,
)
def classes(cluster: Cluster) -> Iterator[Fault]:
    """An Ingress that got an address is served, whatever its class is called."""
    known = cluster.of(listings.INGRESS_CLASSES)
    default = any(one.metadata.annotations.get(_DEFAULT) == "true" for one in known)
    for ingress in _live(cluster):
        if ingress.status.load_balancer.ingress:
            continue
        name = ingress.spec.ingress_class_name
        if name and cluster.lacks(listings.INGRESS_CLASSES, name):
            names = sorted(one.metadata.name for one in known)
            there = f"; there is {listed(names)}" if names else "; there is no IngressClass"
            problem = f"IngressClass {name} (spec.ingressClassName) does not exist{there}."
        elif not name and not default and _CLASS not in ingress.metadata.annotations:
            problem = "It names no IngressClass, and no IngressClass is the default."
        else:
            continue
        yield _fault(
            ingress,
            problem,
            "No ingress controller serves the Ingress: it has no address.",
            command="kubectl get ingressclasses",
        )


@rule(
    "ingress-classes-default",
    "More than one IngressClass is the default.",
    listings.INGRESS_CLASSES,
)
def default_classes(cluster: Cluster) -> Iterator[Fault]:
    defaults = [
        one.metadata
        for one in cluster.of(listings.INGRESS_CLASSES)
        if one.metadata.annotations.get(_DEFAULT) == "true"
    ]
    for meta in defaults if len(defaults) > 1 else ():
        others = sorted(other.name for other in defaults if other is not meta)
        yield Fault(
            severity=Severity.WARNING,
            subject=subject_of("IngressClass", meta),
            evidence=f"It is the default IngressClass, and so is {listed(others)}.",
            why="The API server refuses new Ingresses that name no class.",
            command="kubectl get ingressclasses -o yaml",
        )


@rule(
    "ingress-class-idle",
    "No controller serves the Ingresses of an IngressClass.",
    listings.INGRESSES,
    listings.INGRESS_CLASSES,
    listings.PODS,
)
def idle_classes(cluster: Cluster) -> Iterator[Fault]:
    """Only where another class shows that controllers here publish addresses."""
    ingresses: dict[str, list[Ingress]] = {}
    for ingress in _live(cluster):
        ingresses.setdefault(ingress.spec.ingress_class_name, []).append(ingress)
    published = {
        name
        for name, own in ingresses.items()
        if any(one.status.load_balancer.ingress for one in own)
    }
    for one in cluster.of(listings.INGRESS_CLASSES):
        name = one.metadata.name
        waiting = [
            ingress.metadata.name
            for ingress in ingresses.get(name, ())
            if cluster.settled(ingress.metadata.creation_timestamp)
        ]
        if not waiting or not published - {name} or name in published:
            continue
        yield Fault(
            severity=Severity.WARNING,
            subject=subject_of("IngressClass", one.metadata),
            evidence=f"No Ingress of the class has an address ({listed(waiting)}): the controller "
            f"{one.spec.controller} does not seem to run.",
            why="Requests to these Ingresses fail.",
            command="kubectl get pods -A",
        )


@rule(
    "ingress-tls",
    "The TLS Secret of an Ingress is missing or does not fit.",
    listings.INGRESSES,
    listings.TLS_SECRETS,
    uses=(listings.SECRETS,),
)
def tls_secrets(cluster: Cluster) -> Iterator[Fault]:
    for ingress in _live(cluster):
        namespace = ingress.metadata.namespace
        for tls in ingress.spec.tls:
            if not tls.secret_name:
                continue
            problem = _secret_problem(cluster, tls.secret_name, namespace, tls.hosts)
            if problem:
                yield _fault(
                    ingress,
                    f"TLS for {listed(tls.hosts) or 'all hosts'} uses Secret "
                    f"{namespace}/{tls.secret_name}, {problem}.",
                    "The ingress controller serves another certificate, which clients reject.",
                    command=f"kubectl -n {namespace} get secrets",
                    causes=(Subject("Secret", tls.secret_name, namespace),),
                )


def _secret_problem(cluster: Cluster, name: str, namespace: str, hosts: Sequence[str]) -> str:
    secret = cluster.find(listings.TLS_SECRETS, name, namespace)
    if secret is None:
        if cluster.lacks(listings.SECRETS, name, namespace):
            return "which does not exist"
        if cluster.find(listings.SECRETS, name, namespace) is not None:
            return "which is not of the type kubernetes.io/tls"
        return ""
    encoded = secret.data.certificate
    dates = validity(encoded)
    if dates is None:
        return "whose tls.crt is not a certificate"
    _, ends = dates
    if ends <= cluster.now:
        return f"whose certificate expired on {ends:%Y-%m-%d %H:%M} UTC"
    names = _names(encoded)
    uncovered = [host for host in hosts if not any(_covers(name, host) for name in names)]
    if uncovered and names:
        return (
            f"whose certificate is not valid for {listed(uncovered)}; it is valid for "
            f"{listed(names)}"
        )
    return ""


def _names(encoded: str) -> list[str]:
    """The DNS names of the first certificate; of an old one, its common name."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(base64.b64decode(encoded))
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return list(alternatives.value.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        common = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        return [str(name.value) for name in common]
    except (ValueError, binascii.Error):
        return []


def _covers(name: str, host: str) -> bool:
    name, host = name.lower(), host.lower()
    if name == host:
        return True
    return name.startswith("*.") and host.partition(".")[2] == name[2:]


@rule("ingress-conflict", "Two Ingresses have the same host and path.", listings.INGRESSES)
def conflicts(cluster: Cluster) -> Iterator[Fault]:
    routes: dict[tuple[str, str, str, str], list[Ingress]] = {}
    for ingress in _live(cluster):
        if ingress.metadata.annotations.get(_CANARY) == "true":
            continue
        name = ingress.spec.ingress_class_name or ingress.metadata.annotations.get(_CLASS, "")
        own = {
            (name, each.host, path.path or "/", path.path_type)
            for each in ingress.spec.rules
            if each.host
            for path in each.http.paths
        }
        for route in own:
            routes.setdefault(route, []).append(ingress)
    for (_, host, path, _), ingresses in sorted(routes.items(), key=lambda item: item[0]):
        for ingress in ingresses if len(ingresses) > 1 else ():
            others = [
                str(subject_of("Ingress", one.metadata)) for one in ingresses if one is not ingress
            ]
            yield _fault(
                ingress,
                f"{host}{path} is also a route of {listed(others)}.",
                "One of the Ingresses gets no requests; which one depends on the controller.",
                Severity.WARNING,
                command="kubectl get ingresses -A",
            )


RULES = (
    broken_backends,
    silent_backends,
    scaled_to_zero,
    classes,
    default_classes,
    idle_classes,
    tls_secrets,
    conflicts,
)
