"""Signed tokens."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.plane.access.authn.jwt import BadToken, SigningKey

KEY = SigningKey.generate()
CLAIMS = {"sub": "jane", "exp": 7, "aud": ["a"]}


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def test_what_was_signed_is_what_is_read() -> None:
    assert KEY.verify(KEY.sign(CLAIMS)) == CLAIMS


def test_a_key_read_from_its_text_is_the_same_key() -> None:
    again = SigningKey(KEY.pem)

    assert again.id == KEY.id
    assert again.verify(KEY.sign(CLAIMS)) == CLAIMS


def test_a_key_of_another_server_is_no_key() -> None:
    with pytest.raises(BadToken):
        KEY.verify(SigningKey.generate().sign(CLAIMS))


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_changed_part_spoils_it(part: int) -> None:
    parts = KEY.sign(CLAIMS).split(".")
    raw = bytearray(urlsafe_b64decode(parts[part] + "=="))
    raw[-1] ^= 1
    parts[part] = encoded(bytes(raw))

    with pytest.raises(BadToken):
        KEY.verify(".".join(parts))


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS256", ""])
def test_no_other_algorithm_is_accepted(algorithm: str) -> None:
    _, claims, signature = KEY.sign(CLAIMS).split(".")
    head = encoded(f'{{"alg":"{algorithm}"}}'.encode())

    with pytest.raises(BadToken):
        KEY.verify(f"{head}.{claims}.{signature}")
    with pytest.raises(BadToken):
        KEY.verify(f"{head}.{claims}.")


def test_an_unsigned_token_and_an_extension_are_refused() -> None:
    for header in ('{"alg":"none"}', '{"alg":"ES256","crit":["exp"],"exp":1}', "[]", '{"alg":[]}'):
        with pytest.raises(BadToken):
            KEY.verify(f"{encoded(header.encode())}.{encoded(b'{}')}.")


@pytest.mark.parametrize("form", ["pem", "der", "jwk"])
def test_the_public_key_is_never_a_shared_secret(form: str) -> None:
    public = load_pem_private_key(KEY.pem, None).public_key()
    info = PublicFormat.SubjectPublicKeyInfo
    secret = {
        "pem": public.public_bytes(Encoding.PEM, info),
        "der": public.public_bytes(Encoding.DER, info),
        "jwk": json.dumps(KEY.public).encode(),
    }[form]
    head = encoded(b'{"alg":"HS256"}')
    signed = f"{head}.{KEY.sign(CLAIMS).split('.')[1]}"
    with pytest.raises(BadToken):
        KEY.verify(f"{signed}.{encoded(hmac.digest(secret, signed.encode(), 'sha256'))}")


def test_claims_that_are_no_object_are_refused() -> None:
    head, _, _ = KEY.sign(CLAIMS).split(".")
    with pytest.raises(BadToken):
        KEY.verify(f"{head}.{encoded(b'[]')}.")


@given(st.text())
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(BadToken):
        KEY.verify(text)


def test_the_public_key_is_a_point_on_the_curve() -> None:
    public = KEY.public

    assert (public["kty"], public["crv"], public["alg"]) == ("EC", "P-256", "ES256")
    assert public["kid"] == KEY.id
    assert [len(urlsafe_b64decode(public[name] + "=")) for name in ("x", "y")] == [32, 32]
