"""Bearer tokens: making them, telling whose one is, and reading them anew when the file changes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from kvestigate.cybernet.refusals import RETRY_SECONDS, Unauthenticated, Unavailable
from kvestigate.cybernet.spec import TokenSpec
from kvestigate.errors import KvestigateError
from kvestigate.kube import times

_LONGEST = 1024
_HINT = "send the token that you were given as Authorization: Bearer TOKEN"

Read = Callable[[], Sequence[TokenSpec]]


def new_token() -> str:
    """A token that nobody can guess."""
    return f"kvc_{secrets.token_urlsafe(32)}"


def digest(token: str) -> str:
    """What a cyberspace knows of a token. It is random and long: no salt would make it safer."""
    return hashlib.sha256(token.encode()).hexdigest()


def bearer(headers: Sequence[str]) -> str:
    """The token that the values of `Authorization` hold; Unauthenticated if there is none."""
    if len(headers) != 1:
        said = "more than one token was sent" if headers else "no token was sent"
        raise Unauthenticated(said, "auth.tokens", hint=_HINT)
    scheme, _, token = headers[0].strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > _LONGEST:
        raise Unauthenticated("Authorization holds no bearer token", "auth.tokens", hint=_HINT)
    return token


def identify(tokens: Sequence[TokenSpec], token: str, now: float) -> str:
    """Whose token it is; Unauthenticated if it is nobody's, or has expired. Pure."""
    presented = digest(token)
    found: TokenSpec | None = None
    for known in tokens:  # all of them, so that the time it takes tells nothing
        if hmac.compare_digest(presented, known.sha256):
            found = known
    if found is None:
        raise Unauthenticated("the token is not known here", "auth.tokens", hint=_HINT)
    if found.expires is not None and now >= found.expires:
        raise Unauthenticated(
            f"the token has expired at {times.text(found.expires)}",
            "auth.tokens.expires",
            hint="ask the operator for a new one",
        )
    return found.identity


def tags_of(tokens: Sequence[TokenSpec], identity: str) -> tuple[str, ...]:
    """What the operator calls an identity besides; several tokens may be of the same one."""
    tags = (tag for known in tokens if known.identity == identity for tag in known.tags)
    return tuple(dict.fromkeys(tags))


class Tokens:
    """The tokens of a cyberspace as its file has them now.

    So a token that is taken out of the file is refused by the next request. While the file cannot
    be read nobody can say which tokens count, and every request is told to come again.
    """

    def __init__(self, tokens: Sequence[TokenSpec], path: Path | None, read: Read) -> None:
        self._tokens = tokens
        self._path = path
        self._read = read
        self._seen: tuple[int, int, int] | None = None

    def __call__(self) -> Sequence[TokenSpec]:
        """Unavailable while the file cannot be read."""
        if self._path is None:
            return self._tokens
        state = _state(self._path)
        if state is None or state != self._seen:
            self._seen = None
            try:
                self._tokens = self._read()
            except KvestigateError as error:
                refusal = Unavailable(
                    f"the tokens cannot be read: {error.message}", "auth.tokens", hint="try again"
                )
                refusal.retry_after = RETRY_SECONDS
                raise refusal from None
            self._seen = state
        return self._tokens


def _state(path: Path) -> tuple[int, int, int] | None:
    """What differs when a file was written anew; None if it cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
