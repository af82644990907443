"""An OpenID Connect issuer of tests: keys, and tokens that are signed with them."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

NOW = 1_800_000_000.0
ISSUER, AUDIENCE = "https://issuer.example.com", "kvestigate"
CLAIMS = {
    "iss": ISSUER,
    "aud": AUDIENCE,
    "exp": NOW + 600,
    "email": "jane@example.com",
    "email_verified": True,
}

RSA_KEY = rsa.generate_private_key(65537, 2048)
WEAK_RSA_KEY = rsa.generate_private_key(65537, 1024)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_EC_KEY = ec.generate_private_key(ec.SECP256R1())
EC_384_KEY = ec.generate_private_key(ec.SECP384R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int, size: int = 0) -> str:
    return encoded(value.to_bytes(size or (value.bit_length() + 7) // 8))


def _ec(key: ec.EllipticCurvePrivateKey, name: str, curve: str) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()
    size = (key.curve.key_size + 7) // 8
    point = {"x": _number(numbers.x, size), "y": _number(numbers.y, size)}
    return {"kty": "EC", "kid": name, "crv": curve, **point}


def jwks(*, without: str = "") -> bytes:
    """The published keys; `without` the one of this ID."""
    numbers = RSA_KEY.public_key().public_numbers()
    private = EC_KEY.private_numbers().private_value
    weak = WEAK_RSA_KEY.public_key().public_numbers()
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
        {**_ec(EC_KEY, "with-private-part", "P-256"), "d": _number(private, 32)},
        {"kty": "RSA", "kid": "weak", "n": _number(weak.n), "e": _number(weak.e)},
        {"kty": "oct", "kid": "shared", "k": encoded(b"secret")},
        {"kty": "EC", "kid": "broken", "crv": "P-256", "x": "AQ", "y": "AQ"},
        {**_ec(EC_KEY, "for-encryption", "P-256"), "use": "enc"},
        "nothing",
    ]
    kept = [key for key in keys if not isinstance(key, dict) or key["kid"] != without]
    return json.dumps({"keys": kept}).encode()


def token(
    claims: Mapping[str, Any] = CLAIMS, *, alg: str = "ES256", kid: str = "ec", **header: Any
) -> str:
    """Signed as `alg` says; the key ID may say something else."""
    head = encoded(json.dumps({"alg": alg, "kid": kid, **header}).encode())
    signed = f"{head}.{encoded(json.dumps(dict(claims)).encode())}"
    return f"{signed}.{encoded(_sign(alg, kid, signed.encode()))}"


def secrets_from_public_keys() -> list[bytes]:
    """What an attacker may sign with if a server takes a public key for a shared secret."""
    found = [jwks(), b"secret", b""]
    for key in (EC_KEY, RSA_KEY):
        for form in (serialization.Encoding.PEM, serialization.Encoding.DER):
            info = serialization.PublicFormat.SubjectPublicKeyInfo
            found.append(key.public_key().public_bytes(form, info))
    return found


def signed_with_secret(secret: bytes, kid: str) -> str:
    """A token whose signature is an HMAC."""
    signed = token(alg="HS256", kid=kid).rpartition(".")[0]
    return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"


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
