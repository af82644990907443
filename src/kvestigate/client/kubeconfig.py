"""Kubeconfig files as values: parsed, merged, each entry knowing the file it came from.

Reads the files it is given and nothing else. What a kubeconfig means is kubectl's to say; here
are its merging rules: the first file to define a name or to set `current-context` wins, and the
later definitions of that name are ignored as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field

from kvestigate.errors import ConfigError, nearest
from kvestigate.kube.documents import Section, first_document, type_name


class _Part(Struct, frozen=True):
    """A mapping of the file. Its repr only names the mapping, whose values may be secrets."""

    section: Section

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.section.label})"


class _Entry(_Part, frozen=True):
    name: str


class Cluster(_Entry, frozen=True):
    """An entry of `clusters`."""

    server: str
    certificate_authority: str
    """A path, absolute; empty when not set."""
    certificate_authority_data: bytes | None
    insecure_skip_tls_verify: bool
    tls_server_name: str
    proxy_url: str
    """May hold a password."""
    disable_compression: bool


class Exec(_Part, frozen=True):
    """A user's credential plugin."""

    command: str
    """A name to find on PATH, or an absolute path."""
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    api_version: str
    install_hint: str
    provide_cluster_info: bool
    interactive_mode: str
    """`Never`, `IfAvailable` or `Always`; empty when a v1 plugin forgot to say."""


class AuthProvider(_Entry, frozen=True):
    """A user's `auth-provider`, the predecessor of plugins: `oidc` is the one that lives on."""

    config: Mapping[str, str]


class User(_Entry, frozen=True):
    """An entry of `users`."""

    client_certificate: str
    """A path, absolute; empty when not set. So are the other paths."""
    client_certificate_data: bytes | None
    client_key: str
    client_key_data: bytes | None
    token: str
    token_file: str
    username: str
    password: str
    as_user: str
    as_uid: str
    as_groups: tuple[str, ...]
    as_user_extra: Mapping[str, tuple[str, ...]]
    auth_provider: AuthProvider | None
    exec: Exec | None

    @property
    def file(self) -> Path:
        return Path(self.section.document.source)


class Context(_Entry, frozen=True):
    """An entry of `contexts`."""

    cluster: str
    user: str
    namespace: str


class Config(Struct, frozen=True):
    """One kubeconfig, or several merged."""

    files: tuple[Path, ...] = ()
    """Those that were there, first to last."""
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    users: Mapping[str, User] = field(default_factory=dict)
    contexts: Mapping[str, Context] = field(default_factory=dict)
    current_context: str = ""
    top: Section | None = None
    """The file that sets `current-context`; None when none does."""

    @property
    def current_context_where(self) -> str:
        """`file:line:column` of the value, empty when it is not set."""
        return self.top.where("current-context") if self.top else ""


def load(path: Path) -> Config:
    """One file, which must exist."""
    try:
        return parse_config(str(path), _read(path))
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such kubeconfig file", hint="check the path, or leave it out"
        ) from None


def load_all(paths: Iterable[Path]) -> Config:
    """The files that exist, merged; the others are skipped, as kubectl does."""
    configs = []
    for path in dict.fromkeys(paths):
        try:
            configs.append(parse_config(str(path), _read(path)))
        except FileNotFoundError:
            continue
    return merge(configs)


def split_paths(variable: str) -> list[Path]:
    """The paths in a `KUBECONFIG` value, without empty ones and repetitions."""
    return [Path(part) for part in dict.fromkeys(variable.split(os.pathsep)) if part]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except IsADirectoryError:
        raise ConfigError(f"{path}: a directory, not a kubeconfig file") from None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read: {error.strerror}", hint=f"check it with: ls -l {path}"
        ) from None


def merge(configs: Iterable[Config]) -> Config:
    """Several kubeconfigs as one: the first to define something wins."""
    files: tuple[Path, ...] = ()
    clusters: dict[str, Cluster] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}
    current, top = "", None
    for config in configs:
        files += config.files
        clusters = clusters | {**config.clusters, **clusters}
        users = users | {**config.users, **users}
        contexts = contexts | {**config.contexts, **contexts}
        if not current:
            current, top = config.current_context, config.top
    return Config(files, clusters, users, contexts, current, top)


def parse_config(file: str, data: bytes) -> Config:
    """The kubeconfig in `data`; `file` is where relative paths start and what messages name."""
    document = first_document(data, file)
    if document.value is None:
        return Config((Path(file),))
    if not isinstance(document.value, dict):
        raise ConfigError(
            f"{document.where()}: not a kubeconfig: a mapping was expected, "
            f"this is {type_name(document.value)}"
        )
    top = Section(document, (), "", document.value)
    check_kind(top)
    current = top.text("current-context")
    return Config(
        files=(Path(file),),
        clusters=_unique(read_cluster(name, body) for name, body in _named(top, "clusters")),
        users=_unique(read_user(name, body) for name, body in _named(top, "users")),
        contexts=_unique(read_context(name, body) for name, body in _named(top, "contexts")),
        current_context=current,
        top=top if current else None,
    )


def check_kind(top: Section) -> None:
    """ConfigError if the document says that it is something else."""
    kind, version = top.text("kind") or "Config", top.text("apiVersion") or "v1"
    if kind != "Config":
        raise top.error(
            f'kind is "{kind}", a kubeconfig has "Config"',
            "kind",
            hint="give the path of a kubeconfig; a manifest is not one",
        )
    if version != "v1":
        raise top.error(f'apiVersion is "{version}", a kubeconfig has "v1"', "apiVersion")


def _named(top: Section, key: str) -> Iterable[tuple[str, Section]]:
    """The name and body of each entry of the list `key`: `{name: x, cluster: {...}}`."""
    singular = key.removesuffix("s")
    for entry in top.sections(key):
        name = entry.text("name")
        if not name:
            raise entry.error(f"an entry of {key} has no name")
        label = f'{singular} "{name}"'
        body = entry.section(singular, label)
        yield name, body or Section(entry.document, entry.path, label, {})


EntryT = TypeVar("EntryT", bound=_Entry)


def _unique(entries: Iterable[EntryT]) -> dict[str, EntryT]:
    by_name: dict[str, EntryT] = {}
    for entry in entries:
        if entry.name in by_name:
            first = by_name[entry.name].section.where()
            raise entry.section.error(
                f"the name is already taken at {first}", hint="rename or remove one of the two"
            )
        by_name[entry.name] = entry
    return by_name


def read_cluster(name: str, body: Section) -> Cluster:
    """The cluster that the mapping `body` describes."""
    return Cluster(
        name=name,
        section=body,
        server=body.text("server"),
        certificate_authority=_path(body, "certificate-authority"),
        certificate_authority_data=body.data("certificate-authority-data"),
        insecure_skip_tls_verify=body.flag("insecure-skip-tls-verify"),
        tls_server_name=body.text("tls-server-name"),
        proxy_url=body.text("proxy-url"),
        disable_compression=body.flag("disable-compression"),
    )


def read_user(name: str, body: Section) -> User:
    """The user that the mapping `body` describes."""
    plugin, provider = body.section("exec"), body.section("auth-provider")
    extra = body.section("as-user-extra")
    return User(
        name=name,
        section=body,
        client_certificate=_path(body, "client-certificate"),
        client_certificate_data=body.data("client-certificate-data"),
        client_key=_path(body, "client-key"),
        client_key_data=body.data("client-key-data"),
        token=body.text("token"),
        token_file=_path(body, "tokenFile"),
        username=body.text("username"),
        password=body.text("password"),
        as_user=body.text("as"),
        as_uid=body.text("as-uid"),
        as_groups=body.strings("as-groups"),
        as_user_extra={} if extra is None else {key: extra.strings(key) for key in extra.values},
        auth_provider=None if provider is None else _auth_provider(provider),
        exec=None if plugin is None else _exec(plugin),
    )


def _auth_provider(body: Section) -> AuthProvider:
    config = body.section("config")
    values = {} if config is None else {key: config.text(key) for key in config.values}
    return AuthProvider(body, body.text("name"), values)


_ASKS_WHEN_IT_CAN = (
    "client.authentication.k8s.io/v1beta1",
    "client.authentication.k8s.io/v1alpha1",
)
"""Versions from before `interactiveMode` existed: they default to `IfAvailable`."""


def _exec(body: Section) -> Exec:
    version = body.text("apiVersion")
    mode = body.text("interactiveMode")
    if not mode and version in _ASKS_WHEN_IT_CAN:
        mode = "IfAvailable"
    command = body.text("command")
    return Exec(
        section=body,
        # Only a command with a slash is a path; a bare name is looked up on PATH.
        command=_path(body, "command") if os.sep in command else command,
        args=body.strings("args"),
        env=tuple((entry.text("name"), entry.text("value")) for entry in body.sections("env")),
        api_version=version,
        install_hint=body.text("installHint"),
        provide_cluster_info=body.flag("provideClusterInfo"),
        interactive_mode=mode,
    )


def read_context(name: str, body: Section) -> Context:
    """The context that the mapping `body` describes."""
    return Context(body, name, body.text("cluster"), body.text("user"), body.text("namespace"))


def _path(body: Section, key: str) -> str:
    """A path in a kubeconfig is relative to the directory of that file."""
    value = body.text(key)
    if not value:
        return ""
    # normpath, as kubectl joins lexically: `a/../b` is `b` even when `a` is a link.
    base = Path(body.document.source).absolute().parent
    return os.path.normpath(base / value)


def alternatives(wanted: str, names: Iterable[str], plural: str) -> str:
    """The hint for a name that is not there: the nearest one, and what there is."""
    known = sorted(names)
    if not known:
        return f"the kubeconfig has no {plural}"
    shown = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
    near = nearest(wanted, known)
    return (f'did you mean "{near}"? ' if near else "") + f"{plural}: {shown}"
