"""Signed tokens of an OpenID Connect issuer: whether to believe one, and what it claims. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from kvestigate.errors import Unauthorized

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

_LEEWAY = 60.0
"""Seconds by which the issuer's clock may differ from ours."""
_SMALLEST_RSA = 2048
_LONGEST = 16 * 1024
_CURVES: Mapping[str, tuple[ec.EllipticCurve, hashes.HashAlgorithm, str]] = {
    "P-256": (ec.SECP256R1(), hashes.SHA256(), "ES256"),
    "P-384": (ec.SECP384R1(), hashes.SHA384(), "ES384"),
}
_RSA: Mapping[str, hashes.HashAlgorithm] = {
    "RS256": hashes.SHA256(),
    "RS384": hashes.SHA384(),
    "RS512": hashes.SHA512(),
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key that the issuer publishes."""

    id: str
    public: PublicKey
    algorithms: frozenset[str]
    """What it may have signed with. The key decides that, never the token."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a token must say to be meant for us."""

    issuer: str
    audience: str


@dataclass(frozen=True, slots=True)
class Token:
    """A token whose form is right; nothing of it is to be believed yet."""

    algorithm: str
    key_id: str
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes


def read_token(text: str) -> Token:
    parts = text.split(".")
    if len(parts) != 3 or len(text) > _LONGEST:
        raise _refused("it is no signed token of three parts")
    header, claims = (_object(part) for part in parts[:2])
    if "crit" in header:
        raise _refused("it demands an extension that is not known here")
    algorithm, key_id = header.get("alg"), header.get("kid", "")
    if not isinstance(algorithm, str) or not isinstance(key_id, str):
        raise _refused("its header names no algorithm")
    signed = f"{parts[0]}.{parts[1]}".encode("ascii")
    return Token(algorithm, key_id, claims, signed, _bytes(parts[2]))


def verify(
    token: Token, keys: Mapping[str, Key], expected: Expected, now: float
) -> Mapping[str, Any]:
    """The claims of a token that is genuine, meant for us and valid now."""
    key = keys.get(token.key_id)
    if key is None:
        raise _refused(f"its issuer has no key {token.key_id!r}")
    if token.algorithm not in key.algorithms:
        raise _refused(f"it is signed with {token.algorithm!r}, which its key is not for")
    try:
        _check(key.public, token)
    except (InvalidSignature, ValueError):
        raise _refused("its signature is wrong") from None
    claims = token.claims
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
    """The keys of a JWKS document; those of kinds we do not know are left out."""
    found: dict[str, Key] = {}
    try:
        listed = msgspec.json.decode(document, type=dict[str, Any]).get("keys")
    except msgspec.DecodeError:
        listed = None
    if not isinstance(listed, list):
        raise Unauthorized("the issuer's keys cannot be read: no JWKS document")
    for each in listed:
        if not isinstance(each, dict) or each.get("use", "sig") != "sig":
            continue
        try:
            key = _key(each)
        except (Unauthorized, KeyError, ValueError):
            continue
        if key is not None:
            found[key.id] = key
    return found


def _key(jwk: Mapping[str, Any]) -> Key | None:
    key_id = str(jwk.get("kid", ""))
    if jwk.get("kty") == "RSA":
        public = rsa.RSAPublicNumbers(_number(jwk["e"]), _number(jwk["n"])).public_key()
        if public.key_size < _SMALLEST_RSA:
            return None
        return Key(key_id, public, _said(jwk, frozenset(_RSA)))
    if jwk.get("kty") == "EC" and jwk.get("crv") in _CURVES:
        curve, _, name = _CURVES[jwk["crv"]]
        numbers = ec.EllipticCurvePublicNumbers(_number(jwk["x"]), _number(jwk["y"]), curve)
        return Key(key_id, numbers.public_key(), _said(jwk, frozenset([name])))
    if jwk.get("kty") == "OKP" and jwk.get("crv") == "Ed25519":
        plain = ed25519.Ed25519PublicKey.from_public_bytes(_bytes(jwk["x"]))
        return Key(key_id, plain, frozenset(["EdDSA"]))
    return None


def _said(jwk: Mapping[str, Any], possible: frozenset[str]) -> frozenset[str]:
    """Of the algorithms that suit the key the one that its issuer names, if any."""
    return possible & {jwk["alg"]} if "alg" in jwk else possible


def _check(key: PublicKey, token: Token) -> None:
    if isinstance(key, rsa.RSAPublicKey):
        key.verify(token.signature, token.signed, padding.PKCS1v15(), _RSA[token.algorithm])
    elif isinstance(key, ec.EllipticCurvePublicKey):
        size = (key.curve.key_size + 7) // 8
        if len(token.signature) != 2 * size:
            raise InvalidSignature
        r, s = (int.from_bytes(half) for half in (token.signature[:size], token.signature[size:]))
        digest = next(d for _, d, name in _CURVES.values() if name == token.algorithm)
        key.verify(encode_dss_signature(r, s), token.signed, ec.ECDSA(digest))
    else:
        key.verify(token.signature, token.signed)


def _object(part: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(_bytes(part), type=dict[str, Any])
    except msgspec.DecodeError:
        raise _refused("its parts are no JSON objects") from None


def _bytes(part: str) -> bytes:
    try:
        # Python takes what is not of the alphabet for nothing, unless told not to.
        padded = part.encode("ascii") + b"=" * (-len(part) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise _refused("its parts are not base64") from None


def _number(part: str) -> int:
    return int.from_bytes(_bytes(part))


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refused(f"its {name} is no time")
    return float(value)


def _refused(why: str) -> Unauthorized:
    return Unauthorized(f"the bearer token is refused: {why}", hint="k8s-cli auth login --token")
