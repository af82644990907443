"""Until when certificates and tokens are good. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from kvestigate.client.auth.identity import jwt_claims, jwt_expiry
from kvestigate.client.kubeconfig import Cluster, User
from kvestigate.kubeconfigs.look import Look


@dataclass(frozen=True, slots=True)
class Validity:
    """Something that ends."""

    what: str
    """`the client certificate CN=admin`"""
    field: str
    ends: datetime


def certificates(pem: bytes) -> tuple[tuple[str, datetime], ...]:
    """Subject and end of each; none if they do not parse, which is told elsewhere."""
    from cryptography import x509

    try:
        certificates = x509.load_pem_x509_certificates(pem)
        return tuple(
            (certificate.subject.rfc4514_string(), certificate.not_valid_after_utc)
            for certificate in certificates
        )
    except ValueError:
        return ()


def of_cluster(cluster: Cluster, look: Look) -> Iterator[Validity]:
    field, data = "certificate-authority-data", cluster.certificate_authority_data
    if not data:
        field = "certificate-authority"
        data = look.contents.get(cluster.certificate_authority, b"")
    for subject, ends in certificates(data):
        yield Validity(f"the certificate authority {subject}", field, ends)


def of_user(user: User, look: Look) -> Iterator[Validity]:
    field, data = "client-certificate-data", user.client_certificate_data
    if not data:
        field, data = "client-certificate", look.contents.get(user.client_certificate, b"")
    # The first is the user's own, the others are the chain.
    for subject, ends in certificates(data)[:1]:
        yield Validity(f"the client certificate {subject}", field, ends)
    if user.token_file:
        # Its content is renewed by whoever mounts it, and still shows when nobody does.
        content = look.contents.get(user.token_file, b"").decode(errors="replace").strip()
        yield from _token(content, "the token in tokenFile", "tokenFile")
    elif user.token:
        yield from _token(user.token, "the token", "token")
    if user.auth_provider is not None and not user.auth_provider.config.get("refresh-token"):
        token = user.auth_provider.config.get("id-token", "")
        yield from _token(token, "the id-token, which nothing renews,", "auth-provider")


def _token(token: str, what: str, field: str) -> Iterator[Validity]:
    claims = jwt_claims(token)
    ends = jwt_expiry(claims) if claims is not None else None
    if ends is not None:
        yield Validity(what, field, ends)


def key_fits(user: User, look: Look) -> bool | None:
    """Whether the client key is that of the certificate; None if that cannot be known."""
    from cryptography import exceptions, x509
    from cryptography.hazmat.primitives import serialization

    data = user.client_certificate_data or look.contents.get(user.client_certificate, b"")
    key_data = user.client_key_data or look.contents.get(user.client_key, b"")
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    try:
        certificate = x509.load_pem_x509_certificate(data)
        key = serialization.load_pem_private_key(key_data, password=None)
        return certificate.public_key().public_bytes(*form) == key.public_key().public_bytes(*form)
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm):
        return None
