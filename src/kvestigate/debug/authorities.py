"""The certificates of a CA bundle, without validating them. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Authority:
    subject: str
    """`CN=kubernetes`"""
    expires: str
    """`2027-01-01 00:00 UTC`"""


def authorities(bundle: bytes) -> tuple[Authority, ...]:
    """Empty if the bundle cannot be parsed; connecting reports that error."""
    from cryptography import x509

    try:
        certificates = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return ()
    return tuple(
        Authority(
            subject=certificate.subject.rfc4514_string(),
            expires=f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC",
        )
        for certificate in certificates
    )
