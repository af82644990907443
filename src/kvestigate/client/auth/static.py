"""Credentials that never change: none, a token, a user name and password, inline certificates."""

from __future__ import annotations

from kvestigate.client.auth.identity import describe_certificate, describe_token
from kvestigate.client.auth.interface import Credential, Credentials, Now, wall_now


class Anonymous:
    """No credentials at all."""

    def __init__(self, reason: str = "no credentials") -> None:
        self._reason = reason

    async def current(self) -> Credential:
        return Credential()

    async def rejected(self, used: Credential) -> bool:
        return False

    def describe(self) -> str:
        return self._reason


class Static:
    """One fixed credential."""

    def __init__(self, credential: Credential, *, now: Now = wall_now) -> None:
        self._credential = credential
        self._now = now

    async def current(self) -> Credential:
        return self._credential

    async def rejected(self, used: Credential) -> bool:
        return False

    def describe(self) -> str:
        credential, parts = self._credential, []
        if credential.certificate:
            parts.append(describe_certificate(credential.certificate, self._now()))
        if credential.token:
            parts.append(describe_token(credential.token, self._now()))
        if credential.basic:
            parts.append(f"password of {credential.basic[0]}")
        return " and ".join(parts) or "no credentials"


_anonymous: type[Credentials] = Anonymous
_static: type[Credentials] = Static
