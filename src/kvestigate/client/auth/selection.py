"""Which credentials a kubeconfig user means, by kubectl's order of precedence.

A client certificate goes with whatever fills the Authorization header. That is the token (its
file before its text), else the password, else the plugin or provider; a plugin is not even run
for a user who has any of the former.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from kvestigate.client.auth.files import CertificateFiles, TokenFile, read_file
from kvestigate.client.auth.interface import (
    Credential,
    Credentials,
    ExecCluster,
    Fetch,
    Now,
    wall_now,
)
from kvestigate.client.auth.static import Anonymous, Static
from kvestigate.client.kubeconfig import AuthProvider, User

_REPLACED_BY = {
    "gcp": "install gke-gcloud-auth-plugin, then: gcloud container clusters get-credentials NAME",
    "azure": "install kubelogin, then: kubelogin convert-kubeconfig",
}


def credentials_for(
    user: User,
    cluster: ExecCluster,
    *,
    environ: Mapping[str, str],
    now: Now = wall_now,
    fetch: Fetch | None = None,
) -> Credentials:
    """The credentials of a user that has passed `check_user`."""
    certificate = _certificate(user, now)
    header = _header(user, now)
    if header is None and certificate is None and user.exec is not None:
        from kvestigate.client.auth.execplugin import ExecPlugin

        return ExecPlugin(user.exec, user=user.name, cluster=cluster, environ=environ, now=now)
    if header is None and user.auth_provider is not None:
        header = _provider(user, user.auth_provider, now, fetch)
    if certificate is not None and header is not None:
        return Layered(certificate, header)
    return certificate or header or Anonymous()


def _certificate(user: User, now: Now) -> Credentials | None:
    if not (user.client_certificate_data or user.client_certificate):
        return None
    if user.client_certificate and user.client_key:
        return CertificateFiles(user.client_certificate, user.client_key, now=now)
    certificate = user.client_certificate_data or read_file(
        Path(user.client_certificate), "client certificate"
    )
    key = user.client_key_data or read_file(Path(user.client_key), "client key")
    return Static(Credential(certificate=certificate, key=key), now=now)


def _header(user: User, now: Now) -> Credentials | None:
    if user.token_file:
        return TokenFile(user.token_file, fallback=user.token, now=now)
    if user.token:
        return Static(Credential(token=user.token), now=now)
    if user.username or user.password:
        return Static(Credential(basic=(user.username, user.password)), now=now)
    return None


def _provider(user: User, provider: AuthProvider, now: Now, fetch: Fetch | None) -> Credentials:
    section, config = provider.section, provider.config
    if provider.name != "oidc":
        raise section.error(
            f'auth-provider "{provider.name}" is no longer supported by Kubernetes',
            "name",
            hint=_REPLACED_BY.get(provider.name, "use a credential plugin: the exec field"),
        )
    for key in ("idp-issuer-url", "client-id"):
        if not config.get(key):
            raise section.error(f"auth-provider oidc needs {key}", "config")
    from kvestigate.client.auth import oidc  # few have a provider, and it is slow to import

    return oidc.Oidc(
        config,
        user=user.name,
        fetch=fetch or oidc.fetch,
        persist=partial(oidc.save_auth_provider, user.file, user.name),
        ca=_provider_ca(provider),
        now=now,
    )


def _provider_ca(provider: AuthProvider) -> bytes | None:
    encoded = provider.config.get("idp-certificate-authority-data")
    if encoded:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            key = "idp-certificate-authority-data"
            raise provider.section.error(f"{key} is not base64", "config", key) from None
    path = provider.config.get("idp-certificate-authority")
    return read_file(Path(path), "certificate authority of the provider") if path else None


class Layered:
    """A client certificate and an Authorization header, both sent, as kubectl does.

    The server believes the certificate first.
    """

    def __init__(self, certificate: Credentials, header: Credentials) -> None:
        self._certificate = certificate
        self._header = header
        self._last: tuple[Credential, Credential, Credential] | None = None

    async def current(self) -> Credential:
        certificate = await self._certificate.current()
        header = await self._header.current()
        if self._last is None or self._last[:2] != (certificate, header):
            both = replace(header, certificate=certificate.certificate, key=certificate.key)
            self._last = (certificate, header, both)
        return self._last[2]

    async def rejected(self, used: Credential) -> bool:
        certificate = Credential(certificate=used.certificate, key=used.key)
        header = replace(used, certificate=None, key=None)
        renewed = [
            await self._certificate.rejected(certificate),
            await self._header.rejected(header),
        ]
        return any(renewed)

    def describe(self) -> str:
        return f"{self._certificate.describe()} and {self._header.describe()}"


_layered: type[Credentials] = Layered
