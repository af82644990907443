"""`debug context`: which cluster is used, and as whom the server sees the user.

If the server cannot be reached, the report has the local part and the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.client.whoami import Identity, ask_json, whoami
from kvestigate.errors import EXIT_OK, KvestigateError


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """`debug context` has no options."""


@dataclass(frozen=True, slots=True)
class Authority:
    subject: str
    """`CN=kubernetes`"""
    expires: str
    """`2027-01-01 00:00 UTC`"""


@dataclass(frozen=True, slots=True)
class TlsFacts:
    """How the server's certificate is verified."""

    verified: bool | None
    """None as long as the server has not shown a certificate that was verified."""
    trust: str
    """`the authorities of the kubeconfig`, `the system's authorities`, `nobody`"""
    server_name: str
    """The name expected in the certificate; empty without TLS."""
    authorities: tuple[Authority, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextReport:
    source: str
    """`flag --kubeconfig PATH`, `KUBECONFIG`, `default path`, `in-cluster`"""
    files: tuple[str, ...]
    context: str
    cluster: str
    user: str
    namespace: str
    server: str
    authentication: str
    """`client certificate CN=admin, expires ...`: what is sent, without secrets."""
    impersonation: str
    tls: TlsFacts | None
    """None over plain http."""
    proxy: str
    """The proxy URL without its password."""
    server_version: str = ""
    platform: str = ""
    identity: Identity | None = None
    problem: str = ""
    """Why the server's part of the report is missing or incomplete."""
    hint: str = ""
    """What to do about the problem."""
    exit_code: int = EXIT_OK
    """Of the command: not 0 if there is a problem."""


async def collect(access: Access, options: ContextOptions) -> ContextReport:
    """The report; if the server does not answer, its local part and the problem."""
    report = local_facts(access)
    try:
        async with connect(access) as api:
            version = await ask_json(api, "GET", "/version")
            report = replace(
                report,
                tls=_answered(report.tls),
                server_version=str(version.get("gitVersion", "")),
                platform=str(version.get("platform", "")),
            )
            report = replace(report, identity=await whoami(api))
            # A credential plugin has an identity only after it has run.
            return replace(report, authentication=access.credentials.describe())
    except KvestigateError as failure:
        return replace(
            report,
            problem=failure.message,
            hint=failure.hint or "",
            exit_code=failure.exit_code,
        )


def local_facts(access: Access) -> ContextReport:
    """The part of the report that needs no server."""
    return ContextReport(
        source=access.source,
        files=tuple(str(file) for file in access.files),
        context=access.context,
        cluster=access.cluster,
        user=access.user,
        namespace=access.namespace,
        server=str(access.server),
        authentication=access.credentials.describe(),
        impersonation=_impersonation(access),
        tls=_tls(access),
        proxy=_without_password(access.proxy_url or ""),
    )


def _impersonation(access: Access) -> str:
    impersonated = access.impersonate
    if impersonated is None:
        return ""
    parts = [impersonated.user, *(f"group {group}" for group in impersonated.groups)]
    if impersonated.uid:
        parts.append(f"uid {impersonated.uid}")
    return ", ".join(parts)


def _tls(access: Access) -> TlsFacts | None:
    if not access.server.secure:
        return None
    name = access.tls.server_name or access.server.host
    if access.tls.insecure:
        return TlsFacts(verified=False, trust="nobody", server_name=name)
    if access.tls.ca is None:
        return TlsFacts(verified=None, trust="the system's authorities", server_name=name)
    return TlsFacts(
        verified=None,
        trust="the authorities of the kubeconfig",
        server_name=name,
        authorities=authorities(access.tls.ca),
    )


def _answered(tls: TlsFacts | None) -> TlsFacts | None:
    """An answer came over a connection whose certificate was verified, unless that is off."""
    if tls is None or tls.verified is not None:
        return tls
    return replace(tls, verified=True)


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


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    if parts.username is None:
        return url
    _, _, address = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{parts.username}:...@{address}").geturl()
