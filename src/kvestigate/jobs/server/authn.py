"""Who sent a request: the header X-User, a hashed bearer token, or a token of an issuer."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import unquote

from kvestigate.errors import Unauthorized, UsageError
from kvestigate.jobs.server.jwt import Expected, key_id, verify
from kvestigate.jobs.server.keys import IssuerKeys
from kvestigate.jobs.server.settings import Oidc, Settings
from kvestigate.jobs.users import Caller, Role, User

_WAY_IN = "k8s-cli auth login --token, with the token that you were given"

HeaderValues = Callable[[str], Sequence[str]]
"""All values of a header of the request."""


class Authenticator(Protocol):
    async def caller(self, headers: HeaderValues) -> Caller:
        """The user who sent the request; Unauthorized if that is not proven."""


def new_token() -> str:
    """A token that nobody can guess."""
    return f"kv_{secrets.token_urlsafe(32)}"


def token_digest(token: str) -> str:
    """The SHA-256 of a token, which servers store. Tokens are random and long: no salt needed."""
    return hashlib.sha256(token.encode()).hexdigest()


def authenticator(settings: Settings, now: Callable[[], float]) -> Authenticator:
    if settings.proves_users:
        return Bearer(settings, now)
    return Header(settings.admins)


class Header:
    """Trusts the header `X-User`: for users of one machine, who trust each other."""

    def __init__(self, admins: frozenset[str] | None = None) -> None:
        self._admins = admins

    async def caller(self, headers: HeaderValues) -> Caller:
        names = headers("x-user")
        if len(names) != 1:
            raise Unauthorized("exactly one X-User header with your user name is required")
        try:
            user = User(unquote(names[0], errors="strict"))
        except (UsageError, UnicodeDecodeError) as error:
            raise Unauthorized(f"X-User: {error}") from None
        # Who can claim to be anybody gains nothing by claiming to be all of them.
        admin = self._admins is None or user.name in self._admins
        return Caller(user, Role.ADMIN if admin else Role.USER)


class Bearer:
    """Trusts only tokens; a header X-User has to name the token's user."""

    def __init__(self, settings: Settings, now: Callable[[], float]) -> None:
        self._settings = settings
        self._now = now
        self._keys = IssuerKeys(settings.oidc, now) if settings.oidc is not None else None

    async def caller(self, headers: HeaderValues) -> Caller:
        token = _bearer(headers("authorization"))
        caller = self._settings.tokens.get(token_digest(token))
        if caller is None:
            caller = await self._issued(token)
        if caller.user.name in (self._settings.admins or ()):
            caller = Caller(caller.user, Role.ADMIN)
        for claimed in headers("x-user"):
            if unquote(claimed, errors="replace") != caller.user.name:
                raise Unauthorized(
                    f"X-User says {claimed!r}, but the bearer token is another user's",
                    hint="k8s-cli auth whoami",
                )
        return caller

    async def _issued(self, token: str) -> Caller:
        oidc = self._settings.oidc
        if oidc is None or self._keys is None or token.count(".") != 2:
            raise Unauthorized("the bearer token is unknown", hint=_WAY_IN)
        keys = await self._keys.with_id(key_id(token))
        claims = verify(token, keys, Expected(oidc.issuer, oidc.audience), self._now())
        return _claimed(oidc, claims)


def _claimed(oidc: Oidc, claims: Mapping[str, Any]) -> Caller:
    name = claims.get(oidc.username_claim)
    if not isinstance(name, str):
        raise Unauthorized(f"the bearer token has no claim {oidc.username_claim!r} with a name")
    if oidc.username_claim == "email" and claims.get("email_verified") is not True:
        raise Unauthorized(
            f"the issuer has not verified the address {name!r}: email_verified is not true",
            hint="verify the address at the issuer; for an issuer without email_verified, the "
            "operator sets oidc.username_claim to another claim, such as sub",
        )
    groups = claims.get(oidc.groups_claim)
    names = groups if isinstance(groups, list) else [groups]
    admin = any(isinstance(group, str) and group in oidc.admin_groups for group in names)
    try:
        return Caller(User(name), Role.ADMIN if admin else Role.USER)
    except UsageError as error:
        raise Unauthorized(f"the bearer token: {error}") from None


def _bearer(values: Sequence[str]) -> str:
    if len(values) != 1:
        raise Unauthorized(
            "exactly one Authorization header with a bearer token is required", hint=_WAY_IN
        )
    scheme, _, token = values[0].partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("the Authorization header has no bearer token", hint=_WAY_IN)
    return token.strip()
