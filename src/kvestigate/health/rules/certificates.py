"""Certificates that have expired or expire soon. Only their dates are shown. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime, timedelta

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.webhooks import webhooks
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings

SOON = timedelta(days=30)
_SHARE = 3
"""Certificates that live shortly are renewed when a third of their time is left."""
_AHEAD = timedelta(minutes=5)
"""Clocks differ."""
_LARGEST = 2_000_000
"""Bytes of base64; a Secret holds no more."""


@rule(
    "certificate-expiry",
    "A certificate in a TLS Secret has expired or expires within 30 days.",
    listings.TLS_SECRETS,
    uses=[listings.INGRESSES],
)
def expiring(cluster: Cluster) -> Iterator[Fault]:
    used = {
        (ingress.metadata.namespace, tls.secret_name)
        for ingress in cluster.of(listings.INGRESSES)
        for tls in ingress.spec.tls
    }
    for secret in cluster.of(listings.TLS_SECRETS):
        name, namespace = secret.metadata.name, secret.metadata.namespace
        dates = validity(secret.data.certificate)
        if dates is not None:
            severity, evidence = _judged(cluster, dates)
        elif (namespace, name) in used:
            severity, evidence = Severity.CRITICAL, "Its tls.crt is not a PEM certificate."
        else:
            continue
        if evidence:
            yield Fault(
                severity=severity,
                subject=Subject("Secret", name, namespace),
                evidence=evidence,
                why="Clients reject a server whose certificate is not valid.",
                command=f"kubectl -n {namespace} get ingress,certificate,secret",
            )


@rule(
    "ca-bundle",
    "The CA bundle of a webhook or an APIService is not valid or expires.",
    listings.VALIDATING_WEBHOOKS,
    listings.MUTATING_WEBHOOKS,
    uses=[listings.API_SERVICES, listings.DEFINITIONS],
)
def bundles(cluster: Cluster) -> Iterator[Fault]:
    for subject, what, closed, bundle in _bundles(cluster):
        if not bundle:
            continue  # the certificates that the API server's host trusts
        dates = validity(bundle, bundle=True)
        severity, evidence = (
            _judged(cluster, dates)
            if dates is not None
            else (Severity.CRITICAL, "It is not a PEM certificate.")
        )
        if evidence:
            yield Fault(
                severity=severity if closed else Severity.WARNING,
                subject=subject,
                evidence=f"caBundle of {what}: {evidence}",
                why="The API server cannot verify whom it calls, and the call fails.",
                command=f"kubectl get {subject.kind.lower()} {subject.name} -o yaml",
                alike=what,
            )


def _bundles(cluster: Cluster) -> Iterator[tuple[Subject, str, bool, str]]:
    """Subject, what it is the bundle of, whether calls must succeed, the bundle."""
    for subject, webhook in webhooks(cluster):
        closed = webhook.failure_policy != "Ignore"
        yield subject, f"webhook {webhook.name}", closed, webhook.client_config.ca_bundle
    for service in cluster.of(listings.API_SERVICES):
        name = service.metadata.name
        yield Subject("APIService", name), "the APIService", True, service.spec.ca_bundle
    for definition in cluster.of(listings.DEFINITIONS):
        conversion = definition.spec.conversion.webhook
        if conversion is not None:
            subject = Subject("CustomResourceDefinition", definition.metadata.name)
            yield subject, "the conversion webhook", True, conversion.client_config.ca_bundle


def _judged(cluster: Cluster, dates: tuple[datetime, datetime]) -> tuple[Severity, str]:
    begins, ends = dates
    left = ends - cluster.now
    date = f"{ends:%Y-%m-%d %H:%M} UTC"
    if ends <= cluster.now:
        return Severity.CRITICAL, f"The certificate expired on {date}."
    if begins > cluster.now + _AHEAD:
        return Severity.CRITICAL, f"The certificate is not valid until {begins:%Y-%m-%d %H:%M} UTC."
    if left <= SOON and left <= (ends - begins) / _SHARE:
        return Severity.WARNING, (
            f"The certificate expires in {counted(left.days, 'day')}, on {date}."
        )
    return Severity.INFO, ""


def validity(encoded: str, *, bundle: bool = False) -> tuple[datetime, datetime] | None:
    """When the certificate in a base64-encoded PEM is valid; None if it holds none.

    A server shows the first; others follow that lead to a root, of which one may be old. Of a
    `bundle` of authorities one that is valid is enough.
    """
    from cryptography import x509

    try:
        certificates = x509.load_pem_x509_certificates(base64.b64decode(encoded[:_LARGEST]))
    except (ValueError, binascii.Error):
        return None
    if not certificates:
        return None
    shown = certificates if bundle else certificates[:1]
    last = max(shown, key=lambda one: one.not_valid_after_utc)
    return last.not_valid_before_utc, last.not_valid_after_utc


RULES = (expiring, bundles)
