"""An OpenID Connect issuer of tests: keys, and tokens that are signed with them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

NOW = 1_800_000_000.0
ISSUER, AUDIENCE = "https://issuer.example.com", "kvestigate"
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 600, "email": "jane@example.com"}

RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_EC_KEY = ec.generate_private_key(ec.SECP256R1())
EC_384_KEY = ec.generate_private_key(ec.SECP384R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int) -> str:
    return encoded(value.to_bytes((value.bit_length() + 7) // 8))


def _ec(key: ec.EllipticCurvePrivateKey, name: str, curve: str) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()
    point = {"x": _number(numbers.x), "y": _number(numbers.y)}
    return {"kty": "EC", "kid": name, "crv": curve, **point}


def jwks() -> bytes:
    numbers = RSA_KEY.public_key().public_numbers()
    raw = ED_KEY.public_key().public_bytes_raw()
    keys = [
        {"kty": "RSA", "kid": "rsa", "n": _number(numbers.n), "e": _number(numbers.e)},
        {
            "kty": "RSA",
            "kid": "only-256",
            "alg": "RS256",
            "n": _number(numbers.n),
            "e": _number(numbers.e),
        },
        _ec(EC_KEY, "ec", "P-256"),
        _ec(EC_384_KEY, "ec-384", "P-384"),
        {"kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": encoded(raw)},
        {"kty": "oct", "kid": "shared", "k": encoded(b"secret")},
        {"kty": "EC", "kid": "broken", "crv": "P-256", "x": "AQ", "y": "AQ"},
        {**_ec(EC_KEY, "for-encryption", "P-256"), "use": "enc"},
        "nothing",
    ]
    return json.dumps({"keys": keys}).encode()


def token(
    claims: Mapping[str, Any] = CLAIMS, *, alg: str = "ES256", kid: str = "ec", **header: Any
) -> str:
    """Signed as `alg` says; the key ID may say something else."""
    head = encoded(json.dumps({"alg": alg, "kid": kid, **header}).encode())
    signed = f"{head}.{encoded(json.dumps(dict(claims)).encode())}"
    return f"{signed}.{encoded(_sign(alg, kid, signed.encode()))}"


def _sign(alg: str, kid: str, signed: bytes) -> bytes:
    if alg in ("RS256", "RS384", "RS512"):
        digest = {"RS256": hashes.SHA256(), "RS384": hashes.SHA384(), "RS512": hashes.SHA512()}
        return RSA_KEY.sign(signed, padding.PKCS1v15(), digest[alg])
    if alg == "EdDSA":
        return ED_KEY.sign(signed)
    if alg in ("ES256", "ES384"):
        key, size = (EC_384_KEY, 48) if alg == "ES384" else (EC_KEY, 32)
        if kid == "other":
            key = OTHER_EC_KEY
        digest_of = hashes.SHA384() if alg == "ES384" else hashes.SHA256()
        r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(digest_of)))
        return r.to_bytes(size) + s.to_bytes(size)
    return b""
