"""What the server shows to the kubelets of a plane, and whose certificates it accepts from them.

Each plane has a CA of its own for its kubelets, which is neither the CA of the server's clients nor
that of its own certificate. So the server's client certificate is good at the kubelets of one plane
and nowhere else: the front does not know its CA, nor do the kubelets of other planes. The other
way round, whoever is reached as a kubelet has to show a certificate of its plane's CA, which
neither the front nor another plane's kubelet can.

The keys follow from the server's CA, so that servers that share `pki/` agree, and a plane costs
nothing until one of its kubelets is asked.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.tls import client_context

CLIENT = "kube-apiserver-kubelet-client"
_ORGANIZATION = "kvestigate:kubelets"
_PLANES = 256
"""Planes whose credentials are kept."""


def kubelet_authority(
    server: CertificateAuthority, plane: str, now: datetime
) -> CertificateAuthority:
    """The CA of a plane's kubelets: of their serving certificates, and of what they are shown."""
    return server.derive(plane, [_ORGANIZATION], now=now)


def kubelet_credentials(
    server: CertificateAuthority, now: datetime
) -> Callable[[str], ssl.SSLContext]:
    """The TLS context for the kubelets of a plane."""

    @lru_cache(maxsize=_PLANES)
    def of(plane: str) -> ssl.SSLContext:
        authority = kubelet_authority(server, plane, now)
        pair = authority.issue_client(CLIENT, now=now)
        return client_context(
            ca=authority.pair.certificate, certificate=pair.certificate, key=pair.key
        )

    return of
