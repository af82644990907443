"""Tokens of an OpenID Connect issuer: whether to believe one, and what it claims. Pure.

PyJWT checks the form and the signature of a token. Its claims are checked here, since PyJWT takes
the time from the machine's clock, and callers give it as an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
import msgspec

from kvestigate.errors import Unauthorized

_LEEWAY = 60.0
"""Seconds by which the issuer's clock may differ from ours."""
_SMALLEST_RSA = 2048
_LONGEST = 16 * 1024
_ALGORITHMS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("RSA", ""): ("RS256", "RS384", "RS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
"""By type and curve of a key. A secret that is shared with the issuer (`oct`) is never a key."""
_PUBLIC = ("kty", "crv", "n", "e", "x", "y")
_JWS = jwt.PyJWS(algorithms=[name for names in _ALGORITHMS.values() for name in names])


@dataclass(frozen=True, slots=True)
class Key:
    """A key that the issuer publishes."""

    id: str
    algorithms: Mapping[str, jwt.PyJWK]
    """The key for each algorithm that it may sign with. The key decides that, never the token."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The issuer and the audience that a token must name."""

    issuer: str
    audience: str


def key_id(token: str) -> str:
    """The ID of the key that a token names; the token is not verified yet."""
    return str(_header(token).get("kid", ""))


def verify(
    token: str, keys: Mapping[str, Key], expected: Expected, now: float
) -> Mapping[str, Any]:
    """The claims of a token that is genuine, meant for us and valid now; else Unauthorized."""
    claims = _signed_claims(token, keys)
    if claims.get("iss") != expected.issuer:
        raise _refused(f"it was issued by {claims.get('iss')!r}")
    audience = claims.get("aud")
    if expected.audience not in (audience if isinstance(audience, list) else [audience]):
        raise _refused(f"it is meant for {audience!r}")
    if now > _time(claims, "exp") + _LEEWAY:
        raise _refused("it has expired")
    if "nbf" in claims and now < _time(claims, "nbf") - _LEEWAY:
        raise _refused("it is not valid yet")
    return claims


def read_keys(document: bytes) -> dict[str, Key]:
    """The keys of a JWKS document; keys of unknown types, and weak ones, are left out."""
    try:
        jwks = msgspec.json.decode(document, type=dict[str, Any]).get("keys")
    except msgspec.DecodeError:
        jwks = None
    if not isinstance(jwks, list):
        raise Unauthorized("the issuer's keys cannot be read: no JWKS document")
    keys = [_key(jwk) for jwk in jwks if isinstance(jwk, dict) and jwk.get("use", "sig") == "sig"]
    return {key.id: key for key in keys if key is not None}


def _signed_claims(token: str, keys: Mapping[str, Key]) -> dict[str, Any]:
    header = _header(token)
    key = keys.get(header.get("kid", ""))
    if key is None:
        raise _refused(f"its issuer has no key {header.get('kid', '')!r}")
    algorithm = header["alg"]
    if algorithm not in key.algorithms:
        raise _refused(f"it is signed with {algorithm!r}, which its key is not for")
    try:
        payload = _JWS.decode(token, key.algorithms[algorithm], algorithms=[algorithm])
    except (jwt.PyJWTError, ValueError):
        raise _refused("its signature is wrong") from None
    try:
        return msgspec.json.decode(payload, type=dict[str, Any])
    except msgspec.DecodeError:
        raise _refused("its claims are not a JSON object") from None


def _header(token: str) -> dict[str, Any]:
    if len(token) > _LONGEST:
        raise _refused(f"it is longer than {_LONGEST} characters")
    try:
        header = _JWS.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError) as error:
        raise _refused(f"it is not a signed JSON Web Token: {error}") from None
    if "crit" in header:
        raise _refused("it requires an extension that is not supported")
    if not isinstance(header.get("alg"), str):
        raise _refused("its header names no algorithm")
    return header


def _key(jwk: Mapping[str, Any]) -> Key | None:
    curve = "" if jwk.get("kty") == "RSA" else str(jwk.get("crv"))
    possible = _ALGORITHMS.get((str(jwk.get("kty")), curve), ())
    # Without private parts: a private key that was published by mistake must not be used as one.
    public = {name: jwk[name] for name in _PUBLIC if name in jwk}
    try:
        usable = {name: jwt.PyJWK(public, name) for name in possible}
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if not usable or (not curve and usable["RS256"].key.key_size < _SMALLEST_RSA):
        return None
    # The only algorithm of an Ed25519 key has two names: EdDSA and Ed25519.
    named = jwk.get("alg") if jwk.get("kty") != "OKP" else None
    allowed = {name: key for name, key in usable.items() if named in (None, name)}
    return Key(str(jwk.get("kid", "")), allowed)


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refused(f"its {name} is not a time")
    return float(value)


def _refused(why: str) -> Unauthorized:
    return Unauthorized(f"the bearer token is refused: {why}", hint="k8s-cli auth login --token")
