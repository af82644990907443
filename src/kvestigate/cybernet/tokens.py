"""PURE but for the randomness. Bearer tokens: making them, and telling whose one is."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence

from kvestigate.cybernet.refusals import Unauthenticated
from kvestigate.cybernet.spec import TokenSpec

_LONGEST = 1024


def new_token() -> str:
    """A token that nobody can guess."""
    return f"kvc_{secrets.token_urlsafe(32)}"


def digest(token: str) -> str:
    """What a cyberspace knows of a token. It is random and long: no salt would make it safer."""
    return hashlib.sha256(token.encode()).hexdigest()


def identify(tokens: Sequence[TokenSpec], headers: Sequence[str]) -> str:
    """Whose token the values of `Authorization` hold; Unauthenticated if nobody's."""
    hint = "send the token that you were given as Authorization: Bearer TOKEN"
    if len(headers) != 1:
        said = "more than one token was sent" if headers else "no token was sent"
        raise Unauthenticated(said, "auth.tokens", hint=hint)
    scheme, _, token = headers[0].strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > _LONGEST:
        raise Unauthenticated("Authorization holds no bearer token", "auth.tokens", hint=hint)
    presented = digest(token)
    found = ""
    for known in tokens:  # all of them, so that the time it takes tells nothing
        if hmac.compare_digest(presented, known.sha256):
            found = known.identity
    if not found:
        raise Unauthenticated("the token is not known here", "auth.tokens", hint=hint)
    return found


def tags_of(tokens: Sequence[TokenSpec], identity: str) -> tuple[str, ...]:
    """What the operator calls an identity besides; several tokens may be of the same one."""
    tags = (tag for known in tokens if known.identity == identity for tag in known.tags)
    return tuple(dict.fromkeys(tags))
