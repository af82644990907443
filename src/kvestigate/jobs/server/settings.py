"""What a server is told about its users: one YAML file. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from kvestigate.errors import InputError
from kvestigate.jobs.accounts.quotas import Quotas, read_quotas
from kvestigate.jobs.tasks.strict import known_fields, listed, mapping, text
from kvestigate.jobs.users import Caller, Role, User

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Oidc:
    """An OpenID Connect issuer whose tokens are believed."""

    issuer: str
    audience: str
    jwks_url: str = ""
    """Where its keys are; empty to ask the issuer's discovery document."""
    username_claim: str = "email"
    groups_claim: str = "groups"
    admin_groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Settings:
    tokens: Mapping[str, Caller] = field(default_factory=dict)
    """Who has the token of which this is the SHA-256."""
    oidc: Oidc | None = None
    admins: frozenset[str] | None = None
    """Names that are administrators however they prove it; None: nobody is named."""
    quotas: Quotas | None = None
    """None: those of the cluster's ConfigMap, if there is one."""

    @property
    def proves_users(self) -> bool:
        """Whether users have to prove who they are."""
        return bool(self.tokens) or self.oidc is not None


def read_settings(document: Any) -> Settings:
    """The settings that a document means; every mistake is named with its path."""
    fields = mapping(document, "the configuration")
    known_fields(fields, {"tokens", "oidc", "admins", "quotas"}, "")
    tokens: dict[str, Caller] = {}
    for index, each in enumerate(listed(fields.get("tokens"), "tokens")):
        digest, caller = _token(each, f"tokens[{index}]")
        if digest in tokens:
            raise InputError(f"tokens[{index}].sha256: is there twice")
        tokens[digest] = caller
    admins = fields.get("admins")
    quotas = fields.get("quotas")
    return Settings(
        tokens=tokens,
        oidc=_oidc(fields["oidc"]) if fields.get("oidc") is not None else None,
        admins=None if admins is None else frozenset(_names(admins, "admins")),
        quotas=None if quotas is None else read_quotas(quotas, "quotas"),
    )


def _token(value: Any, path: str) -> tuple[str, Caller]:
    fields = mapping(value, path)
    known_fields(fields, {"user", "role", "sha256"}, f"{path}.")
    digest = text(fields.get("sha256"), f"{path}.sha256").lower()
    if not _DIGEST.fullmatch(digest):
        raise InputError(
            f"{path}.sha256: is not the SHA-256 of a token: 64 hexadecimal digits",
            hint="`k8s-cli auth token USER` makes a token and the entry for it",
        )
    role = text(fields.get("role", "user"), f"{path}.role")
    if role not in tuple(Role):
        raise InputError(f"{path}.role: {role!r} is none", hint="there are: user, admin")
    return digest, Caller(User(text(fields.get("user"), f"{path}.user")), Role(role))


def _oidc(value: Any) -> Oidc:
    fields = mapping(value, "oidc")
    words = {"issuer", "audience", "jwks_url", "username_claim", "groups_claim"}
    known_fields(fields, words | {"admin_groups"}, "oidc.")
    given = {key: text(fields[key], f"oidc.{key}") for key in words if key in fields}
    for key in ("issuer", "audience"):
        if key not in given:
            raise InputError(f"oidc.{key}: the field is required")
    for key in ("issuer", "jwks_url"):
        url = given.get(key, "https://")
        parts = urlsplit(url)
        # Keys that came over plain HTTP are anybody's, but for those from this machine.
        local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
        if parts.scheme != "https" and not local:
            raise InputError(f"oidc.{key}: {url!r} is no https:// address")
    groups = frozenset(_names(fields.get("admin_groups"), "oidc.admin_groups"))
    return Oidc(admin_groups=groups, **given)


def _names(value: Any, path: str) -> list[str]:
    return [text(each, f"{path}[{index}]") for index, each in enumerate(listed(value, path))]
