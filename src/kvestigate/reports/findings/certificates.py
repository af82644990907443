"""TLS Secrets whose certificates end soon. Only their dates are ever told. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime, timedelta

from kvestigate.render.severity import Severity
from kvestigate.reports.findings.model import Finding, Rule, Subject
from kvestigate.snapshot import listings
from kvestigate.snapshot.snapshot import Snapshot

SOON = timedelta(days=30)


def expiring(snapshot: Snapshot) -> Iterator[Finding]:
    for secret in snapshot.of(listings.TLS_SECRETS):
        name, namespace = secret.metadata.name, secret.metadata.namespace
        ends = not_after(secret.data.certificate)
        if ends is None or ends - snapshot.captured_at > SOON:
            continue
        gone = ends <= snapshot.captured_at
        days = abs((ends - snapshot.captured_at).days)
        seen = f"its certificate {'ended' if gone else 'ends'} on {ends:%Y-%m-%d %H:%M} UTC"
        yield Finding(
            rule="certificate-expiry",
            severity=Severity.CRITICAL if gone else Severity.WARNING,
            subject=Subject("Secret", name, namespace),
            evidence=seen if gone else f"{seen}, in {days} days",
            why="clients refuse a server whose certificate has ended",
            command=f"kubectl -n {namespace} get ingress,certificate,secret",
        )


def not_after(encoded: str) -> datetime | None:
    """When the first certificate of a base64-encoded PEM ends; None if there is none in it."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(base64.b64decode(encoded)).not_valid_after_utc
    except (ValueError, binascii.Error):
        return None


RULES = (
    Rule(
        "certificate-expiry",
        "A certificate in a TLS Secret ends soon.",
        (listings.TLS_SECRETS,),
        expiring,
    ),
)
