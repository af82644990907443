"""Signed tokens: ES256 JSON Web Tokens, made and checked with one key."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

_HALF = 32
"""Bytes of each of the two numbers that are a P-256 signature."""


class BadToken(Exception):
    """Not a token of ours."""


class SigningKey:
    """A P-256 key; PEM in and out. `cryptography` is loaded when it is first used."""

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
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        head = _encode(msgspec.json.encode({"alg": "ES256", "kid": self.id}))
        text = f"{head}.{_encode(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_encode(r.to_bytes(_HALF, 'big') + s.to_bytes(_HALF, 'big'))}"

    def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token that this key signed, else BadToken. Times are not looked at."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        text, _, signature = token.rpartition(".")
        head, _, body = text.partition(".")
        try:
            if msgspec.json.decode(_decode(head)).get("alg") != "ES256":
                raise BadToken
            raw = _decode(signature)
            if len(raw) != 2 * _HALF:
                raise BadToken
            r, s = int.from_bytes(raw[:_HALF], "big"), int.from_bytes(raw[_HALF:], "big")
            self._key.public_key().verify(
                encode_dss_signature(r, s), text.encode(), ec.ECDSA(hashes.SHA256())
            )
            claims: dict[str, Any] = msgspec.json.decode(_decode(body), type=dict[str, Any])
        except (ValueError, AttributeError, msgspec.MsgspecError, InvalidSignature):
            raise BadToken from None
        return claims

    @cached_property
    def id(self) -> str:
        return _encode(hashlib.sha256(self._point).digest())

    @property
    def public(self) -> dict[str, str]:
        """The public key as a JSON Web Key."""
        x, y = self._point[1 : 1 + _HALF], self._point[1 + _HALF :]
        shape = {"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256"}
        return {**shape, "x": _encode(x), "y": _encode(y)}

    @cached_property
    def _point(self) -> bytes:
        from cryptography.hazmat.primitives import serialization

        return self._key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self.pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the signing key is not an elliptic-curve key")
        return key


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
