"""What must hold of a cluster and a user before we talk to one as the other.

The rules are kubectl's: it too refuses a certificate given twice or two kinds of login at once.
Reads the files that the entries point to, to say early that one is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kvestigate.client.auth.interface import EXEC_MODES, EXEC_VERSIONS
from kvestigate.client.endpoint import check_proxy, parse_endpoint
from kvestigate.client.kubeconfig import Cluster, Exec, User
from kvestigate.errors import ConfigError
from kvestigate.kube.documents import Section

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"


def check_cluster(cluster: Cluster) -> Iterator[ConfigError]:
    """All errors of a cluster entry, the most important first."""
    section = cluster.section
    if not cluster.server:
        yield section.error(
            "it has no server",
            hint=f"set it with: kubectl config set-cluster {cluster.name} --server=https://HOST:PORT",
        )
    else:
        try:
            parse_endpoint(cluster.server)
        except ValueError as error:
            yield section.error(
                f"server is not usable: {error}", "server", hint="write it as https://HOST:PORT"
            )
    if cluster.proxy_url and (problem := check_proxy(cluster.proxy_url)):
        yield section.error(f"proxy-url is not usable: {problem}", "proxy-url")
    yield from _check_authority(cluster)


def _check_authority(cluster: Cluster) -> Iterator[ConfigError]:
    section, path = cluster.section, cluster.certificate_authority
    data = cluster.certificate_authority_data
    if path and data:
        yield _given_twice(section, "certificate-authority")
    if cluster.insecure_skip_tls_verify and (path or data):
        yield section.error(
            "insecure-skip-tls-verify is true although there is a certificate authority",
            "insecure-skip-tls-verify",
            hint="remove insecure-skip-tls-verify to check the server against the authority",
        )
    if data:
        yield from _check_pem(section, "certificate-authority-data", data)
    elif path:
        yield from _check_file(section, "certificate-authority", path, pem=True)


def check_user(user: User) -> Iterator[ConfigError]:
    """All errors of a user entry, the most important first."""
    section = user.section
    if user.token and (user.username or user.password):
        yield section.error(
            "it has both a token and a password, and only one can be sent",
            "token",
            hint="remove token, or username and password",
        )
    yield from _check_certificate(user)
    if user.token_file and not user.token:
        yield from _check_file(section, "tokenFile", user.token_file)
    if user.exec is not None:
        if user.auth_provider is not None:
            yield section.error("it has both exec and auth-provider", "exec", hint="remove one")
        yield from _check_exec(user.exec)
    if (user.as_uid or user.as_groups or user.as_user_extra) and not user.as_user:
        key = next(
            key for key in ("as-uid", "as-groups", "as-user-extra") if section.values.get(key)
        )
        yield section.error(f"{key} is set without as, the user to impersonate", key)


def _check_certificate(user: User) -> Iterator[ConfigError]:
    section = user.section
    certificate, key = user.client_certificate_data, user.client_key_data
    if not (certificate or user.client_certificate):
        return
    if certificate and user.client_certificate:
        yield _given_twice(section, "client-certificate")
    if key and user.client_key:
        yield _given_twice(section, "client-key")
    if not (key or user.client_key):
        yield section.error(
            "it has a client certificate without its key",
            "client-certificate-data" if certificate else "client-certificate",
            hint="set client-key-data or client-key",
        )
    if certificate:
        yield from _check_pem(section, "client-certificate-data", certificate)
    else:
        yield from _check_file(section, "client-certificate", user.client_certificate, pem=True)
    if user.client_key:
        yield from _check_file(section, "client-key", user.client_key)


def _check_exec(plugin: Exec) -> Iterator[ConfigError]:
    section = plugin.section
    if not plugin.command:
        yield section.error("exec has no command", hint="name the credential plugin to run")
    if plugin.api_version not in EXEC_VERSIONS:
        problem = f'is "{plugin.api_version}"' if plugin.api_version else "is missing"
        yield section.error(
            f"exec.apiVersion {problem}, it must be one of {', '.join(EXEC_VERSIONS)}",
            "apiVersion",
            hint="update the plugin and write its kubeconfig anew",
        )
    elif plugin.interactive_mode not in EXEC_MODES:
        mode = plugin.interactive_mode
        problem = f'is "{mode}"' if mode else "is missing, which v1 requires"
        yield section.error(
            f"exec.interactiveMode {problem}; it is one of {', '.join(EXEC_MODES)}",
            "interactiveMode",
            hint="set interactiveMode: IfAvailable",
        )
    if any(not name for name, _ in plugin.env):
        yield section.error("exec.env has an entry without a name", "env")


def _given_twice(section: Section, field: str) -> ConfigError:
    return section.error(
        f"both {field} and {field}-data are set",
        field,
        hint="remove one of the two, as for kubectl",
    )


def _check_file(
    section: Section, field: str, path: str, *, pem: bool = False
) -> Iterator[ConfigError]:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        yield section.error(f"{field} {path} cannot be read: {error.strerror}", field)
        return
    if pem:
        yield from _check_pem(section, field, data)


def _check_pem(section: Section, field: str, data: bytes) -> Iterator[ConfigError]:
    if _CERTIFICATE not in data:
        yield section.error(f"{field} holds no PEM certificate", field)
