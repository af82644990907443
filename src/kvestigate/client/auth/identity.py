"""Whose a certificate or a token is and until when it is good, read without verifying it. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Any


def jwt_claims(token: str) -> dict[str, Any] | None:
    """The payload of a JWT, unverified; None when `token` is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims = json.loads(payload)
    except (binascii.Error, ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def jwt_expiry(claims: dict[str, Any]) -> datetime | None:
    """When a token with these claims expires; None when it does not say so in a usable way."""
    expiry = claims.get("exp")
    if isinstance(expiry, bool) or not isinstance(expiry, int | float):
        return None
    try:
        return datetime.fromtimestamp(int(expiry), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def describe_token(token: str, now: datetime) -> str:
    """`bearer token of alice, expires 2027-01-01 00:00 UTC`; less when it is no JWT."""
    claims = jwt_claims(token)
    if claims is None:
        return "bearer token"
    subject = claims.get("sub")
    whose = f" of {subject}" if isinstance(subject, str) else ""
    expiry = jwt_expiry(claims)
    return f"bearer token{whose}" + (f", {_validity(expiry, now)}" if expiry else "")


def describe_certificate(pem: bytes, now: datetime) -> str:
    """`client certificate CN=admin,O=system:masters, expires 2027-01-01 00:00 UTC`."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(pem)
        subject = ",".join(
            attribute.rfc4514_string() for rdn in certificate.subject.rdns for attribute in rdn
        )
        expiry = certificate.not_valid_after_utc
    except ValueError:
        return "client certificate that cannot be parsed"
    return f"client certificate {subject}, {_validity(expiry, now)}"


def _validity(expiry: datetime, now: datetime) -> str:
    return f"{'expired' if expiry <= now else 'expires'} {expiry:%Y-%m-%d %H:%M} UTC"
