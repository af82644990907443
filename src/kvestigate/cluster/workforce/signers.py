"""The signers of a plane's CertificateSigningRequests."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, partial

from kvestigate.cluster.controllers.certificates.requests import KUBELET_SERVING
from kvestigate.cluster.controllers.certificates.signing import SigningController
from kvestigate.cluster.controllers.runtime import Factory
from kvestigate.cluster.plane.access.authn.plane_clients import client_authority
from kvestigate.cluster.plane.egress.credentials import kubelet_authority
from kvestigate.http.certificates import CertificateAuthority

SIGNER = "certificatesigningrequest-signing-controller"


def signing(server: CertificateAuthority, plane: str) -> Factory:
    """Makes the signing controller of a plane, whose CAs follow from the server's.

    What they issue is good on that plane only: client certificates for its API server, serving
    certificates of its kubelets.
    """

    @cache
    def authority(signer: str) -> CertificateAuthority:
        derive = kubelet_authority if signer == KUBELET_SERVING else client_authority
        return derive(server, plane, datetime.now(UTC))

    return partial(SigningController, authority)
