"""Tokens of service accounts: issued for a plane, good in no other, dead with what they name.

A plane's name is not enough to tell it from others: another plane may get the name of a deleted
one, and all planes begin with the same accounts. So with its first token a plane gets an identity
(`identity_of`), an object of its state that no API serves, which every token names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

from kvestigate.cluster.plane.access.authn.jwt import BadToken, SigningKey
from kvestigate.cluster.plane.model.request_info import root_path
from kvestigate.cluster.plane.model.user import AUTHENTICATED, User
from kvestigate.cluster.plane.store.model import ABSENT, Item, Put, ResourceKey
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import Unauthorized

_ISSUER = "https://kubernetes.default.svc"
_CLAIM = "kubernetes.io"
_GROUP = "system:serviceaccounts"
_IDENTITIES: ResourceKey = ("kvestigate.dev", "identities")
"""The collection of the identity of a plane. No API serves it."""
_IDENTITY = "plane"
_VERIFIED = 4096
"""Tokens whose signature was checked and is remembered."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a token dies with, besides its account."""

    resource: str
    """pods, secrets or nodes"""
    claim: str
    """pod, secret or node"""
    name: str
    uid: str
    """Empty for the node of a pod that has no Node object."""


@dataclass(frozen=True, slots=True)
class Account:
    """A service account as its token names it."""

    name: str
    """`system:serviceaccount:default:builder`"""
    token_id: str
    about: dict[str, Any]
    """The claim with namespace, serviceaccount and what the token is bound to."""

    def redeem(self, state: PlaneState) -> User:
        about = self.about
        namespace, account = about.get("namespace", ""), about.get("serviceaccount") or {}
        alive = (
            about.get(_IDENTITY, "") == identity_of(state)
            and _lives(state, "serviceaccounts", namespace, account)
            and _lives(state, "pods", namespace, about.get("pod"))
            and _lives(state, "secrets", namespace, about.get("secret"))
            and (bool(about.get("pod")) or _lives(state, "nodes", "", about.get("node")))
        )
        if not alive:
            raise Unauthorized("Unauthorized")
        return User(self.name, groups(namespace), account["uid"], _extra(self.token_id, about))


def identity_of(state: PlaneState) -> str:
    """What tells a plane from all others that ever had its name; empty before its first token."""
    item = state.get(_IDENTITIES, "", _IDENTITY)
    return "" if item is None else item.uid


def identify(random: Random) -> Put:
    """The mutation that gives a plane its identity; it is refused if there is one."""
    body = b'{"kind":"Identity","apiVersion":"kvestigate.dev/v1","metadata":{"name":"plane",'
    body += b'"resourceVersion":"\0"}}'
    uid = str(UUID(int=random.getrandbits(128), version=4))
    return Put(_IDENTITIES, "", _IDENTITY, uid, body, ABSENT)


def groups(namespace: str) -> tuple[str, ...]:
    """Those of every service account of a namespace."""
    return (_GROUP, f"{_GROUP}:{namespace}", AUTHENTICATED)


class TokenIssuer:
    """Issues and recognises the tokens of all planes of a server."""

    def __init__(self, key: SigningKey) -> None:
        self.key = key
        self._verified: dict[str, dict[str, Any]] = {}

    def issuer(self, plane: str) -> str:
        return f"{_ISSUER}{root_path(plane)}"

    def issue(
        self,
        plane: str,
        account: Item,
        *,
        audiences: Sequence[str],
        now: float,
        seconds: int,
        bound: Sequence[Bound],
        random: Random,
        identity: str = "",
        good_for: int = 0,
    ) -> str:
        """A token of the plane with this identity.

        It is `good_for` as many seconds, if that is more than its user should count on.
        """
        about: dict[str, Any] = {_IDENTITY: identity} if identity else {}
        about |= {
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        }
        for each in bound:
            about[each.claim] = {"name": each.name, "uid": each.uid}
            if not each.uid:
                del about[each.claim]["uid"]
        if good_for:
            about["warnafter"] = int(now) + seconds
        return self.key.sign(
            {
                "aud": list(audiences) or [self.issuer(plane)],
                "exp": int(now) + (good_for or seconds),
                "iat": int(now),
                "iss": self.issuer(plane),
                "jti": str(UUID(int=random.getrandbits(128), version=4)),
                _CLAIM: about,
                "nbf": int(now),
                "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
            }
        )

    def mine(self, token: str) -> bool:
        """Whether it looks like a token of this kind at all."""
        return token.count(".") == 2

    def recognise(self, token: str, plane: str, now: float, audience: str = "") -> Account:
        """Whom a token of this plane names; Unauthorized if it is not genuine, or not for us."""
        claims = self._claims(token)
        issuer = self.issuer(plane)
        meant = claims.get("aud") or ()
        genuine = (
            claims.get("iss") == issuer
            and (audience or issuer) in meant
            and claims.get("nbf", 0) <= now < claims.get("exp", 0)
        )
        if not genuine:
            raise Unauthorized("Unauthorized")
        return Account(claims["sub"], claims.get("jti", ""), claims.get(_CLAIM) or {})

    def _claims(self, token: str) -> dict[str, Any]:
        known = self._verified.get(token)
        if known is None:
            try:
                known = self.key.verify(token)
            except BadToken:
                raise Unauthorized("Unauthorized") from None
            if len(self._verified) >= _VERIFIED:
                self._verified.clear()
            self._verified[token] = known
        return known


def _lives(
    state: PlaneState, plural: str, namespace: str, reference: dict[str, str] | None
) -> bool:
    """Whether what a token names is still the same object."""
    if reference is None:
        return True
    item = state.get(("", plural), namespace, reference.get("name", ""))
    return item is not None and item.uid == reference.get("uid")


def _extra(token_id: str, about: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {
        "authentication.kubernetes.io/credential-id": (f"JTI={token_id}",)
    }
    for what in ("node", "pod"):
        if value := about.get(what):
            extra[f"authentication.kubernetes.io/{what}-name"] = (value.get("name", ""),)
            if uid := value.get("uid"):
                extra[f"authentication.kubernetes.io/{what}-uid"] = (uid,)
    return extra
