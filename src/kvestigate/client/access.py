"""All that is needed to talk to one cluster: where it is, whom to trust, who we are.

`resolve` is the way in: flags, environment and files to one `Access`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kvestigate.client.auth.files import read_file
from kvestigate.client.auth.interface import Credentials, ExecCluster, Fetch, Now, wall_now
from kvestigate.client.auth.selection import credentials_for
from kvestigate.client.auth.static import Anonymous
from kvestigate.client.choice import AccessOptions, Choice, choose
from kvestigate.client.endpoint import (
    Endpoint,
    check_proxy,
    parse_endpoint,
    proxy_from_environment,
)
from kvestigate.client.incluster import SERVICE_ACCOUNT
from kvestigate.client.kubeconfig import Cluster, User
from kvestigate.client.usable import check_cluster, check_user
from kvestigate.errors import ConfigError

__all__ = ["Access", "AccessOptions", "Impersonation", "Tls", "resolve"]


class Tls(Struct, frozen=True):
    """How the server proves itself."""

    ca: bytes | None = None
    """The only authorities to trust, PEM; None for the system's."""
    insecure: bool = False
    server_name: str | None = None
    """The name to ask for and to find in the certificate, when it is not the host's."""


class Impersonation(Struct, frozen=True):
    """Whom to act as, on top of who we are."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def headers(self) -> list[tuple[str, str]]:
        """The header fields that ask the server for it."""
        fields = [("Impersonate-User", self.user)]
        if self.uid:
            fields.append(("Impersonate-Uid", self.uid))
        fields += [("Impersonate-Group", group) for group in self.groups]
        for key, values in self.extra.items():
            fields += [(f"Impersonate-Extra-{_escape(key)}", value) for value in values]
        return fields


_HEADER_CHARACTERS = frozenset(
    b"!#$&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)


def _escape(key: str) -> str:
    """`key` with what a header name cannot hold percent-encoded, which the server undoes."""
    return "".join(
        chr(byte) if byte in _HEADER_CHARACTERS else f"%{byte:02X}" for byte in key.encode()
    )


class Access(Struct, frozen=True):
    """One cluster as seen by one user."""

    server: Endpoint
    credentials: Credentials
    tls: Tls = field(default_factory=Tls)
    proxy_url: str | None = None
    """`http`, `https` or `socks5`; may hold a password."""
    impersonate: Impersonation | None = None
    namespace: str = "default"
    context: str = ""
    cluster: str = ""
    user: str = ""
    """The names of the kubeconfig entries, empty when there are none."""
    source: str = ""
    """`flag --kubeconfig PATH`, `KUBECONFIG`, `default path`, `flag --server`, `in-cluster`"""
    files: tuple[Path, ...] = ()
    """The kubeconfig files that were read, first to last."""
    disable_compression: bool = False
    request_timeout: float | None = None

    def __repr__(self) -> str:
        return f"Access({self.server}, context={self.context!r}, user={self.user!r})"


def resolve(
    options: AccessOptions,
    environ: Mapping[str, str],
    home: Path | None,
    *,
    service_account: Path = SERVICE_ACCOUNT,
    now: Now = wall_now,
    fetch: Fetch | None = None,
) -> Access:
    """The access that flags and environment mean: flags, KUBECONFIG, `~/.kube/config`, the pod.

    Raises a bare NoCluster when there is nothing to start from, ConfigError when there is
    something and it cannot be used, UsageError when a flag cannot.
    """
    choice = choose(options, environ, home, service_account)
    _raise_first(check_cluster(choice.cluster))
    _raise_first(check_user(choice.user))
    endpoint = parse_endpoint(choice.cluster.server)
    ca = _authority(choice.cluster)
    return Access(
        server=endpoint,
        credentials=_credentials(choice, endpoint, ca, environ, now, fetch),
        tls=Tls(
            ca=ca,
            insecure=choice.cluster.insecure_skip_tls_verify,
            server_name=choice.cluster.tls_server_name or None,
        ),
        proxy_url=choice.cluster.proxy_url or _environment_proxy(endpoint, environ),
        impersonate=_impersonation(choice.user),
        namespace=choice.namespace,
        context=choice.context,
        cluster=choice.cluster.name,
        user=choice.user.name,
        source=choice.source,
        files=choice.files,
        disable_compression=choice.cluster.disable_compression,
        request_timeout=options.request_timeout,
    )


def _raise_first(problems: Iterable[ConfigError]) -> None:
    for problem in problems:
        raise problem


def _authority(cluster: Cluster) -> bytes | None:
    if cluster.certificate_authority_data or not cluster.certificate_authority:
        return cluster.certificate_authority_data
    return read_file(Path(cluster.certificate_authority), "certificate authority")


def _credentials(
    choice: Choice,
    endpoint: Endpoint,
    ca: bytes | None,
    environ: Mapping[str, str],
    now: Now,
    fetch: Fetch | None,
) -> Credentials:
    if not endpoint.secure:
        # kubectl's rule: what travels in the clear must not be a secret.
        return Anonymous("no credentials, which are never sent over plain http")
    cluster = choice.cluster
    exec_cluster = ExecCluster(
        server=cluster.server,
        tls_server_name=cluster.tls_server_name,
        insecure_skip_tls_verify=cluster.insecure_skip_tls_verify,
        certificate_authority_data=ca,
        proxy_url=cluster.proxy_url,
        disable_compression=cluster.disable_compression,
        config=_plugin_config(cluster),
    )
    return credentials_for(choice.user, exec_cluster, environ=environ, now=now, fetch=fetch)


def _plugin_config(cluster: Cluster) -> Any:
    """The extension in which a cluster entry carries settings for the plugin."""
    for extension in cluster.section.sections("extensions"):
        if extension.text("name") == "client.authentication.k8s.io/exec":
            return extension.values.get("extension")
    return None


def _environment_proxy(endpoint: Endpoint, environ: Mapping[str, str]) -> str | None:
    proxy = proxy_from_environment(endpoint, environ)
    if proxy and (problem := check_proxy(proxy)):
        variable = "HTTPS_PROXY" if endpoint.secure else "HTTP_PROXY"
        raise ConfigError(
            f"{variable} is not usable: {problem}",
            hint=f"correct or unset it, or put {endpoint.host} into NO_PROXY",
        )
    return proxy


def _impersonation(user: User) -> Impersonation | None:
    if not user.as_user:
        return None
    return Impersonation(user.as_user, user.as_uid, user.as_groups, user.as_user_extra)
