"""Client certificates that are good on one plane only.

Each plane has an intermediate CA for the certificates that its CertificateSigningRequests get. TLS
accepts them, as they lead up to the CA of the server; their issuer names the plane, and on another
plane they are refused.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvestigate.http.certificates import CertificateAuthority, DistinguishedName

_ORGANIZATION = "kvestigate:clients"


def client_authority(
    server: CertificateAuthority, plane: str, now: datetime
) -> CertificateAuthority:
    """The CA of the client certificates of one plane; its key follows from the server's."""
    return server.intermediate(plane, [_ORGANIZATION], now=now)


def plane_of(issuer: DistinguishedName) -> str | None:
    """The one plane that a certificate is good for; None for all planes of the server."""
    return issuer.common_name if _ORGANIZATION in issuer.organizations else None
