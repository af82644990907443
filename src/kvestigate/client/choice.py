"""Which cluster and user are meant: by flags, KUBECONFIG, the default path, or the pod we are in.

Chooses and checks; what becomes of the choice is `access`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kvestigate.client.endpoint import parse_endpoint
from kvestigate.client.incluster import InCluster, in_cluster
from kvestigate.client.kubeconfig import (
    Cluster,
    Config,
    Context,
    User,
    alternatives,
    load,
    load_all,
    read_cluster,
    read_user,
    split_paths,
)
from kvestigate.errors import ConfigError, InputError, NoCluster, UsageError
from kvestigate.kube.documents import File, Section


class AccessOptions(Struct, frozen=True):
    """The flags that say which cluster is meant and how to log in. Empty means not given."""

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    user: str = ""
    namespace: str = ""
    as_user: str = ""
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    server: str = ""
    token: str = ""
    insecure_skip_tls_verify: bool = False
    ca_file: str = ""
    tls_server_name: str = ""
    request_timeout: float | None = None
    """Seconds; None leaves each call its own."""

    def __repr__(self) -> str:
        # Without the token.
        return f"AccessOptions(kubeconfig={self.kubeconfig!r}, context={self.context!r})"


class Choice(Struct, frozen=True):
    """The entries that flags and files together point to, flags applied."""

    cluster: Cluster
    user: User
    context: str
    """Empty when no context is involved."""
    namespace: str
    source: str
    """`flag --kubeconfig PATH`, `KUBECONFIG`, `default path`, `flag --server`, `in-cluster`"""
    files: tuple[Path, ...] = ()
    """The kubeconfig files that were read, first to last."""


def choose(
    options: AccessOptions,
    environ: Mapping[str, str],
    home: Path | None,
    service_account: Path,
) -> Choice:
    """The one cluster and user that are meant; an error that says what is missing otherwise."""
    config, source = load_config(options, environ, home)
    if not (options.context or config.current_context or options.cluster or options.server):
        pod = None if options.kubeconfig else in_cluster(environ, service_account)
        if pod is None:
            raise _nothing_chosen(config, environ, home)
        chosen = _choice_of_pod(pod)
    else:
        context = _context(config, options)
        chosen = Choice(
            cluster=_cluster(config, options, context),
            user=_user(config, options, context),
            context=context.name if context else "",
            namespace=(context.namespace if context else "") or "default",
            source=source if config.files else "flag --server",
            files=config.files,
        )
    return replace(
        chosen,
        cluster=_with_cluster_flags(chosen.cluster, options),
        user=_with_user_flags(chosen.user, options),
        namespace=options.namespace or chosen.namespace,
    )


def load_config(
    options: AccessOptions, environ: Mapping[str, str], home: Path | None
) -> tuple[Config, str]:
    """The merged configuration, and where it comes from."""
    paths, source = config_paths(options, environ, home)
    return load(paths[0]) if options.kubeconfig else load_all(paths), source


def config_paths(
    options: AccessOptions, environ: Mapping[str, str], home: Path | None
) -> tuple[list[Path], str]:
    """The kubeconfig files to read, whether or not they exist, and which setting names them."""
    if options.kubeconfig:
        return [Path(options.kubeconfig)], f"flag --kubeconfig {options.kubeconfig}"
    if variable := environ.get("KUBECONFIG"):
        return split_paths(variable), "KUBECONFIG"
    return [] if home is None else [default_path(home)], "default path"


def default_path(home: Path) -> Path:
    return home / ".kube" / "config"


def _nothing_chosen(config: Config, environ: Mapping[str, str], home: Path | None) -> NoCluster:
    files = ", ".join(str(file) for file in config.files)
    if config.contexts:
        return ConfigError(
            f"{files}: current-context is not set",
            hint="choose with --context NAME, or for good: kubectl config use-context NAME; "
            + alternatives("", config.contexts, "contexts"),
        )
    if files:
        return ConfigError(
            f"{files}: no contexts are defined, so no cluster is selected",
            hint="give another kubeconfig with --kubeconfig PATH",
        )
    if variable := environ.get("KUBECONFIG"):
        paths = ", ".join(str(path) for path in split_paths(variable))
        return ConfigError(
            f"KUBECONFIG names no file that exists: {paths or variable}",
            hint="correct or unset KUBECONFIG, or give --kubeconfig PATH",
        )
    looked = "the home directory is unknown" if home is None else f"no file {default_path(home)}"
    return NoCluster(
        f"no cluster to talk to: {looked}, KUBECONFIG is not set, and this is not a pod",
        hint="name a kubeconfig with --kubeconfig PATH or KUBECONFIG",
    )


def _context(config: Config, options: AccessOptions) -> Context | None:
    name = options.context or config.current_context
    if not name:
        return None
    if (context := config.contexts.get(name)) is not None:
        return context
    hint = alternatives(name, config.contexts, "contexts")
    if not options.context:
        raise ConfigError(
            f'{config.current_context_where}: current-context is "{name}", '
            "but there is no such context",
            hint=hint,
        )
    files = ", ".join(str(file) for file in config.files) or "no kubeconfig was found"
    raise ConfigError(f'--context: there is no context "{name}" ({files})', hint=hint)


def _cluster(config: Config, options: AccessOptions, context: Context | None) -> Cluster:
    name = options.cluster or (context.cluster if context else "")
    if name and name in config.clusters:
        return config.clusters[name]
    hint = alternatives(name, config.clusters, "clusters")
    if options.cluster:
        raise ConfigError(f'--cluster: there is no cluster "{name}"', hint=hint)
    if options.server and not name:
        return read_cluster("", _section("flag --server", {}))
    assert context is not None
    if not name:
        raise context.section.error("it names no cluster", hint=hint)
    raise context.section.error(f'there is no cluster "{name}"', "cluster", hint=hint)


def _user(config: Config, options: AccessOptions, context: Context | None) -> User:
    name = options.user or (context.user if context else "")
    if not name:
        return read_user("", _section("no user", {}))
    if name in config.users:
        return config.users[name]
    hint = alternatives(name, config.users, "users")
    if options.user or context is None:
        raise ConfigError(f'--user: there is no user "{name}"', hint=hint)
    raise context.section.error(f'there is no user "{name}"', "user", hint=hint)


def _choice_of_pod(pod: InCluster) -> Choice:
    cluster: dict[str, Any] = {"server": pod.server}
    if pod.ca:
        cluster["certificate-authority-data"] = base64.b64encode(pod.ca).decode()
    return Choice(
        cluster=read_cluster("in-cluster", _section("in-cluster", cluster)),
        user=read_user(
            "service account", _section("in-cluster", {"tokenFile": str(pod.token_file)})
        ),
        context="",
        namespace=pod.namespace,
        source="in-cluster",
    )


def _section(origin: str, values: dict[str, Any]) -> Section:
    """A section for values from flags instead of a file."""
    return Section(File(origin, b"", values), (), "", values)


def _with_cluster_flags(cluster: Cluster, options: AccessOptions) -> Cluster:
    if options.server:
        try:
            parse_endpoint(options.server)
        except ValueError as error:
            raise InputError(
                f"not usable: {error}", where="--server", hint="write it as https://HOST:PORT"
            ) from None
        # Another server has another name on its certificate.
        cluster = replace(cluster, server=options.server, tls_server_name="")
    if options.tls_server_name:
        cluster = replace(cluster, tls_server_name=options.tls_server_name)
    if options.insecure_skip_tls_verify and options.ca_file:
        raise UsageError("--insecure-skip-tls-verify contradicts --certificate-authority")
    if options.insecure_skip_tls_verify or options.ca_file:
        cluster = replace(
            cluster,
            insecure_skip_tls_verify=options.insecure_skip_tls_verify,
            certificate_authority="",
            certificate_authority_data=_read_authority(options.ca_file),
        )
    return cluster


def _read_authority(path: str) -> bytes | None:
    if not path:
        return None
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"the certificate authority cannot be read: {error.strerror}", where=path
        ) from None
    if b"-----BEGIN CERTIFICATE-----" not in data:
        raise InputError("there is no PEM certificate in it", where=path)
    return data


def _with_user_flags(user: User, options: AccessOptions) -> User:
    if options.token:
        # Whatever else the entry would put into the Authorization header gives way.
        user = replace(user, token=options.token, token_file="", username="", password="")
    if (options.as_groups or options.as_uid) and not (options.as_user or user.as_user):
        flag = "--as-group" if options.as_groups else "--as-uid"
        raise UsageError(f"{flag} needs --as, the user to impersonate")
    return replace(
        user,
        as_user=options.as_user or user.as_user,
        as_uid=options.as_uid or user.as_uid,
        as_groups=options.as_groups or user.as_groups,
    )
