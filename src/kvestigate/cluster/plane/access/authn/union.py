"""All the ways in that a server offers, tried in turn: certificate, handed-out token, account."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256

from kvestigate.cluster.plane.access.authn.plane_clients import plane_of
from kvestigate.cluster.plane.access.authn.service_accounts import TokenIssuer
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import Authenticated
from kvestigate.cluster.plane.model.user import ANONYMOUS, AUTHENTICATED, User
from kvestigate.errors import Unauthorized
from kvestigate.http.message import Request

_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_RECENT = 1024
_SUBJECTS = 1024
"""Certificates whose subject is remembered."""


class Credentials:
    """What a request shows, judged. The certificate was verified by TLS already."""

    def __init__(
        self, tokens: Mapping[str, User], issuer: TokenIssuer, *, anonymous: bool = False
    ) -> None:
        """`tokens`: the sha256 of each handed-out token, and whose it is."""
        self._tokens = dict(tokens)
        self._issuer = issuer
        self._anonymous = anonymous
        self._subjects: OrderedDict[bytes, tuple[User, str | None]] = OrderedDict()
        self._recent: dict[str, User] = {}
        """What was shown of handed-out tokens, as it was: hashing it anew would take longer."""

    def authenticate(self, request: Request, plane: str, now: Callable[[], float]) -> Authenticated:
        shown = request.headers.get("authorization")
        if (user := self._recent.get(shown)) is not None:
            return user
        scheme, _, token = shown.partition(" ")
        token = token.strip()
        if scheme.lower() == "bearer" and token:
            user = self._tokens.get(digest(token))
            if user is not None:
                if len(self._recent) < _RECENT:
                    self._recent[shown] = user
                return user
            if self._issuer.mine(token):
                return self._issuer.recognise(token, plane, now())
            raise Unauthorized("Unauthorized")
        if request.peer.certificate is not None:
            user, only_plane = self._subject(request.peer.certificate)
            if only_plane in (None, plane):
                return user
            raise Unauthorized("Unauthorized")
        if self._anonymous:
            return ANONYMOUS
        raise Unauthorized("Unauthorized")

    def _subject(self, certificate: bytes) -> tuple[User, str | None]:
        """The user whom a certificate names, and the plane if it is good on one plane only."""
        known = self._subjects.get(certificate)
        if known is None:
            from kvestigate.http.certificates import issuer_of, subject_of

            subject, issuer = subject_of(certificate), issuer_of(certificate)
            shown = {_CREDENTIAL: (f"X509SHA256={sha256(certificate).hexdigest()}",)}
            groups = (*subject.organizations, AUTHENTICATED)
            known = User(subject.common_name, groups, extra=shown), plane_of(issuer)
            self._subjects[certificate] = known
            if len(self._subjects) > _SUBJECTS:
                self._subjects.popitem(last=False)
        return known
