"""TLS Secrets whose certificates expire soon. Only their dates are shown. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime, timedelta

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings

SOON = timedelta(days=30)


@rule(
    "certificate-expiry",
    "A certificate in a TLS Secret has expired or expires within 30 days.",
    listings.TLS_SECRETS,
)
def expiring(cluster: Cluster) -> Iterator[Fault]:
    for secret in cluster.of(listings.TLS_SECRETS):
        name, namespace = secret.metadata.name, secret.metadata.namespace
        ends = not_after(secret.data.certificate)
        if ends is None or ends - cluster.now > SOON:
            continue
        expired = ends <= cluster.now
        days = (ends - cluster.now).days
        date = f"{ends:%Y-%m-%d %H:%M} UTC"
        yield Fault(
            severity=Severity.CRITICAL if expired else Severity.WARNING,
            subject=Subject("Secret", name, namespace),
            evidence=f"The certificate expired on {date}."
            if expired
            else f"The certificate expires in {counted(days, 'day')}, on {date}.",
            why="Clients reject a server whose certificate has expired.",
            command=f"kubectl -n {namespace} get ingress,certificate,secret",
        )


def not_after(encoded: str) -> datetime | None:
    """When the first certificate of a base64-encoded PEM expires; None if it holds none."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(base64.b64decode(encoded)).not_valid_after_utc
    except (ValueError, binascii.Error):
        return None


RULES = (expiring,)
