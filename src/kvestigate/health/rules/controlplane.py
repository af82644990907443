"""Parts of the control plane that stopped, and certificate requests that wait. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from kvestigate.health.cluster import Cluster, condition
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.render.human import age, since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.administration import CertificateRequest

_COMPONENTS = {
    "kube-scheduler": "New pods are not scheduled.",
    "kube-controller-manager": "Deployments, Jobs, endpoints, nodes and the like are not acted on.",
}
"""Leases in kube-system; a managed control plane may have none."""
_LATE = timedelta(seconds=60)
"""Leaders renew every few seconds, and lose the lease after 15."""
_WAITING = timedelta(minutes=1)
"""Kubernetes approves and signs what it may within seconds."""


@rule("component-dead", "A part of the control plane does not run.", listings.LEASES)
def dead_components(cluster: Cluster) -> Iterator[Fault]:
    """Compared with the newest lease: the clock of this machine may be wrong."""
    newest = cluster.newest_renewal
    for name, why in _COMPONENTS.items():
        lease = cluster.find(listings.LEASES, name, "kube-system")
        renewed = lease.spec.renew_time if lease is not None else None
        if lease is None or renewed is None or newest is None or newest - renewed < _LATE:
            continue
        late = age((newest - renewed).total_seconds())
        holder = lease.spec.holder_identity or "nobody"
        yield Fault(
            severity=Severity.CRITICAL,
            subject=Subject("Lease", name, "kube-system"),
            evidence=f"{name} does not run: its lease, held by {holder}, was not renewed"
            f"{since_when(renewed)} ({late}).",
            why=why,
            command=f"kubectl -n kube-system get pods,leases | grep {name}",
            since=renewed,
        )


@rule(
    "certificate-request",
    "A CertificateSigningRequest waits or failed.",
    listings.CERTIFICATE_REQUESTS,
)
def waiting_requests(cluster: Cluster) -> Iterator[Fault]:
    for request in cluster.of(listings.CERTIFICATE_REQUESTS):
        said = _trouble(cluster, request)
        if said:
            name = request.metadata.name
            yield Fault(
                severity=Severity.WARNING,
                subject=Subject("CertificateSigningRequest", name),
                evidence=f"{said} Requested by {request.spec.username or 'an unknown user'} from "
                f"signer {request.spec.signer_name}.",
                why="Who asked for the certificate cannot authenticate or serve with it.",
                command=f"kubectl describe csr {name}",
                since=request.metadata.creation_timestamp,
            )


def _trouble(cluster: Cluster, request: CertificateRequest) -> str:
    conditions = request.status.conditions
    failed = condition(conditions, "Failed")
    if failed is not None:
        return f"Signing failed: {failed.reason}: {failed.message}."
    born = request.metadata.creation_timestamp
    if condition(conditions, "Denied") is not None or not cluster.settled(born, _WAITING):
        return ""
    if condition(conditions, "Approved") is None:
        return f"Pending{since_when(born)}: nobody approved or denied it."
    if not request.status.certificate:
        return f"Approved, but not signed{since_when(born)}: the signer does not run."
    return ""


RULES = (
    dead_components,
    waiting_requests,
)
