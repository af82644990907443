"""Signed tokens: ES256 JSON Web Tokens, made and checked with one key."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

_ALGORITHM = "ES256"


class BadToken(Exception):
    """Not a token of ours."""


class SigningKey:
    """A P-256 key; PEM in and out. PyJWT and `cryptography` are loaded when it is first used."""

    def __init__(self, pem: bytes) -> None:
        self.pem = pem

    @classmethod
    def generate(cls) -> SigningKey:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        return cls(
            ec.generate_private_key(ec.SECP256R1()).private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    def sign(self, claims: dict[str, Any]) -> str:
        import jwt

        # kube-apiserver writes no `typ`, either.
        headers = {"kid": self.id, "typ": None}
        return jwt.PyJWS().encode(
            msgspec.json.encode(claims), self._key, _ALGORITHM, headers=headers
        )

    def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token that this key signed, else BadToken. Times are not looked at."""
        import jwt

        jws = jwt.PyJWS(algorithms=[_ALGORITHM])
        try:
            payload = jws.decode(token, self._key.public_key(), algorithms=[_ALGORITHM])
            return msgspec.json.decode(payload, type=dict[str, Any])
        except (jwt.PyJWTError, msgspec.MsgspecError, ValueError, TypeError):
            raise BadToken from None

    @cached_property
    def id(self) -> str:
        """The key's thumbprint (RFC 7638)."""
        thumbprint = hashlib.sha256(msgspec.json.encode(self._numbers, order="sorted")).digest()
        return urlsafe_b64encode(thumbprint).rstrip(b"=").decode()

    @property
    def public(self) -> dict[str, str]:
        """The public key as a JSON Web Key."""
        return {"use": "sig", "kid": self.id, "alg": _ALGORITHM, **self._numbers}

    @cached_property
    def _numbers(self) -> dict[str, str]:
        """What identifies the public key: `kty`, `crv`, `x` and `y`."""
        from jwt.algorithms import ECAlgorithm

        return ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self.pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the signing key is not an elliptic-curve key")
        return key
