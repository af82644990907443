"""Who may use the console: those to whom the operator gave the URL with its one-time token.

The token is worth one visit. It becomes a cookie that no script can read and that browsers do not
send with requests of other sites. Each session has a second secret, which forms have to repeat: a
page of another port of this machine counts as the same site, but cannot read our forms.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256

_MOST = 64
"""Sessions that are kept; the oldest gives way."""


class Sessions:
    """The sessions of one console. In memory only: a restart ends all."""

    def __init__(self, announce: Callable[[str], None] = lambda token: None) -> None:
        """`announce` is told of the token for the next browser when one was used."""
        self._announce = announce
        self._open: OrderedDict[str, None] = OrderedDict()
        self.token = secrets.token_urlsafe(32)
        """Opens one session."""

    def redeem(self, token: str) -> str | None:
        """The secret of a new session; None if the token is not the one that is due."""
        if not same(token, self.token):
            return None
        self.token = secrets.token_urlsafe(32)
        session = secrets.token_urlsafe(32)
        self._open[session] = None
        while len(self._open) > _MOST:
            self._open.popitem(last=False)
        self._announce(self.token)
        return session

    def knows(self, session: str) -> bool:
        return any(same(session, known) for known in self._open)

    def end(self, session: str) -> None:
        self._open.pop(session, None)


def form_token(session: str) -> str:
    """What every form of the session has to repeat. The cookie cannot be computed from it."""
    return hmac.new(session.encode(), b"kvestigate console form", sha256).hexdigest()


def same(given: str, expected: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())
