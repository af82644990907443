"""Which tokens of an issuer are believed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import Unauthorized
from kvestigate.jobs.server.jwt import Expected, key_id, read_keys, verify
from tests.jobs.issuer import (
    AUDIENCE,
    CLAIMS,
    EC_KEY,
    ISSUER,
    NOW,
    encoded,
    jwks,
    secrets_from_public_keys,
    signed_with_secret,
    token,
)

KEYS = read_keys(jwks())


def verified(text: str) -> dict[str, Any]:
    return dict(verify(text, KEYS, Expected(ISSUER, AUDIENCE), NOW))


def test_the_keys_that_can_be_used() -> None:
    assert set(KEYS) == {"rsa", "only-256", "ec", "ec-384", "ed", "with-private-part"}


@pytest.mark.parametrize(
    ("alg", "kid"),
    [
        ("RS256", "rsa"),
        ("RS384", "rsa"),
        ("RS512", "rsa"),
        ("RS256", "only-256"),
        ("ES256", "ec"),
        ("ES384", "ec-384"),
        ("EdDSA", "ed"),
    ],
)
def test_a_genuine_token_is_believed(alg: str, kid: str) -> None:
    assert verified(token(alg=alg, kid=kid)) == CLAIMS


@pytest.mark.parametrize(
    "change", [{"aud": ["another", AUDIENCE]}, {"exp": NOW - 59}, {"nbf": NOW + 59}]
)
def test_small_differences_are_allowed(change: dict[str, Any]) -> None:
    assert verified(token({**CLAIMS, **change}))


UNSIGNED = token(alg="none")
FORGED = f"{UNSIGNED.rpartition('.')[0]}.{token().rpartition('.')[2]}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (token({**CLAIMS, "iss": "https://evil.example.com"}), "issued by"),
        (token({**CLAIMS, "aud": "another"}), "meant for 'another'"),
        (token({**CLAIMS, "aud": None}), "meant for None"),
        (token({**CLAIMS, "exp": NOW - 61}), "expired"),
        (token({**CLAIMS, "exp": "tomorrow"}), "exp is not a time"),
        (token({**CLAIMS, "exp": True}), "exp is not a time"),
        (token({**CLAIMS, "nbf": NOW + 61}), "not valid yet"),
        (token({key: value for key, value in CLAIMS.items() if key != "exp"}), "exp is not a time"),
        (UNSIGNED, "'none'"),
        (FORGED, "'none'"),
        (token(alg="HS256"), "'HS256'"),
        (token(alg="RS256", kid="ec"), "'RS256'"),
        (token(alg="ES256", kid="ec-384"), "'ES256'"),
        (token(alg="RS384", kid="only-256"), "'RS384'"),
        (token(kid="nobody's"), "no key"),
        (token(kid="shared", alg="HS256"), "no key"),
        (token(kid="for-encryption"), "no key"),
        (token(kid="weak", alg="RS256"), "no key"),
        (token(kid="other"), "no key"),
        (token(b64=False), "not a signed JSON Web Token"),
        (token(alg="PS256", kid="rsa"), "'PS256'"),
        (token(crit=["exp"]), "extension"),
        (token()[:-6], "signature is wrong"),
        (token()[:-2] + "!!", "not a signed JSON Web Token: Invalid crypto padding"),
        (f"{token()}.more", "not a signed JSON Web Token"),
        (f"a.{'x' * 20_000}.c", "longer than 16384 characters"),
        ("..", "not a signed JSON Web Token"),
        (f"{encoded(b'[]')}.{encoded(b'{}')}.", "not a signed JSON Web Token"),
        (f"{encoded(b'{}')}.{encoded(b'{}')}.", "no algorithm"),
    ],
)
def test_anything_else_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unauthorized, match="the bearer token is refused") as caught:
        verified(text)
    assert why in str(caught.value)


@pytest.mark.parametrize("kid", ["rsa", "ec", "shared"])
def test_a_public_key_is_never_a_shared_secret(kid: str) -> None:
    for secret in secrets_from_public_keys():
        with pytest.raises(Unauthorized, match="the bearer token is refused"):
            verified(signed_with_secret(secret, kid))


@pytest.mark.parametrize("name", ["none", "None", "NONE", ""])
def test_an_unsigned_token_is_never_believed(name: str) -> None:
    with pytest.raises(Unauthorized, match="the bearer token is refused"):
        verified(f"{token(alg=name).rpartition('.')[0]}.")


def test_the_key_is_named_before_the_token_is_believed() -> None:
    assert key_id(token(kid="made-up")) == "made-up"
    head = encoded(b'{"alg": "ES256"}')
    assert key_id(f"{head}.{encoded(b'{}')}.") == ""


def test_a_changed_claim_does_not_pass() -> None:
    head, _, signature = token().split(".")
    changed = encoded(json.dumps({**CLAIMS, "email": "root@example.com"}).encode())
    with pytest.raises(Unauthorized, match="signature is wrong"):
        verified(f"{head}.{changed}.{signature}")


def test_a_key_cannot_come_with_the_token() -> None:
    numbers = EC_KEY.public_key().public_numbers()
    own = {"kty": "EC", "crv": "P-256", "x": str(numbers.x), "y": str(numbers.y)}
    with pytest.raises(Unauthorized, match="no key"):
        verified(token(kid="mine", jwk=own))


@given(st.text(max_size=60) | st.from_regex(r"[\w-]{0,20}\.[\w-]{0,20}\.[\w-]{0,20}"))
def test_no_text_at_all_is_a_failure_of_ours(text: str) -> None:
    with pytest.raises(Unauthorized):
        verified(text)


@pytest.mark.parametrize("document", [b"", b"[]", b"{}", b'{"keys": 1}'])
def test_what_is_no_list_of_keys_is_refused(document: bytes) -> None:
    with pytest.raises(Unauthorized, match="no JWKS"):
        read_keys(document)
