"""The configuration file of a server: users, roles, quotas and host names. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlsplit

from kvestigate.errors import InputError
from kvestigate.http.hosts import canonical
from kvestigate.jobs.accounts.quotas import Quotas
from kvestigate.jobs.users import Caller, Role, User
from kvestigate.kube.documents import read, text

_DIGEST = re.compile(r"[0-9a-f]{64}")


def _address(value: Any, path: str) -> str:
    url = text(value, path)
    parts = urlsplit(url)
    # Keys that came over plain HTTP are anybody's, but for those from this machine.
    local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme != "https" and not local:
        raise InputError(f"{url!r} is not an https:// address", where=path)
    return url


def _digest(value: Any, path: str) -> str:
    digest = text(value, path).lower()
    if not _DIGEST.fullmatch(digest):
        raise InputError(
            "is not the SHA-256 of a token: 64 hexadecimal digits",
            where=path,
            hint="`k8s-cli auth token USER` makes a token and the entry for it",
        )
    return digest


def _host(value: Any, path: str) -> str:
    host = canonical(text(value, path))
    if host is None:
        raise InputError(
            f"{value!r} is not a host name or an IP address",
            where=path,
            hint="write jobs.example.com, without scheme and port",
        )
    return host


@dataclass(frozen=True, slots=True)
class Oidc:
    """An OpenID Connect issuer whose tokens are believed."""

    issuer: Annotated[str, _address]
    audience: Annotated[str, text]
    jwks_url: Annotated[str, _address] = ""
    """Where its keys are; empty to ask the issuer's discovery document."""
    username_claim: Annotated[str, text] = "email"
    groups_claim: Annotated[str, text] = "groups"
    admin_groups: frozenset[Annotated[str, text]] = frozenset()


@dataclass(frozen=True, slots=True)
class Settings:
    tokens: Mapping[str, Caller] = field(default_factory=dict)
    """By SHA-256 of a token: the user who has the token."""
    oidc: Oidc | None = None
    admins: frozenset[str] | None = None
    """Names of administrators, however they authenticate; None if the file names none."""
    quotas: Quotas | None = None
    """None: those of the cluster's ConfigMap, if there is one."""
    hosts: frozenset[str] = frozenset()
    """Names of the server besides its address and loopback, as `hosts.canonical` writes them."""

    @property
    def proves_users(self) -> bool:
        """Whether users have to authenticate."""
        return bool(self.tokens) or self.oidc is not None


@dataclass(frozen=True, slots=True)
class _Token:
    user: Annotated[str, text]
    sha256: Annotated[str, _digest]
    role: Role = Role.USER

    def __post_init__(self) -> None:
        User(self.user)


@dataclass(frozen=True, slots=True)
class _File:
    """The fields of the file."""

    tokens: tuple[_Token, ...] = ()
    oidc: Oidc | None = None
    admins: frozenset[Annotated[str, text]] | None = None
    quotas: Quotas | None = None
    hosts: frozenset[Annotated[str, _host]] = frozenset()


def read_settings(document: Any) -> Settings:
    """The settings that a document means; every mistake is named with its path."""
    file = read(_File, document)
    tokens: dict[str, Caller] = {}
    for index, token in enumerate(file.tokens):
        if token.sha256 in tokens:
            raise InputError("the same token is listed twice", where=f"tokens[{index}].sha256")
        tokens[token.sha256] = Caller(User(token.user), token.role)
    return Settings(tokens, file.oidc, file.admins, file.quotas, file.hosts)
