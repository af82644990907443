"""Files of handed-out tokens."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.plane.access.authn.token_file import digest, parse_tokens, read_tokens
from kvestigate.cluster.plane.model.user import AUTHENTICATED, User
from kvestigate.errors import InputError

HASHED = hashlib.sha256(b"secret").hexdigest()


@pytest.mark.parametrize(
    ("line", "user"),
    [
        ("secret,jane", User("jane", (AUTHENTICATED,))),
        ("secret,jane,1001", User("jane", (AUTHENTICATED,), "1001")),
        (
            'secret,jane,1001,"dev,system:masters"',
            User("jane", ("dev", "system:masters", AUTHENTICATED), "1001"),
        ),
        ("secret, jane, , dev", User("jane", ("dev", AUTHENTICATED))),
        (f"sha256:{HASHED},jane", User("jane", (AUTHENTICATED,))),
        (f"sha256:{HASHED.upper()},jane", User("jane", (AUTHENTICATED,))),
        ("# a comment\n\nsecret,jane\n", User("jane", (AUTHENTICATED,))),
    ],
)
def test_a_line_is_a_user_by_the_hash_of_the_token(line: str, user: User) -> None:
    assert parse_tokens(line, source="f") == {digest("secret"): user}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("secret", "f:1: a line needs at least a token and a user"),
        ("a,b\n,jane", "f:2: a line needs at least a token and a user"),
        ("secret,", "f:1: a line needs at least a token and a user"),
        ("sha256:abc,jane", "f:1: sha256: is not followed by 64 hexadecimal digits"),
        (f"secret,jane\nsha256:{HASHED},bob", "f:2: the same token is on an earlier line"),
    ],
)
def test_what_a_line_cannot_be(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_tokens(text, source="f")

    assert refused.value.message == message


@given(st.text())
def test_any_text_is_users_or_an_error(text: str) -> None:
    try:
        parse_tokens(text, source="f")
    except InputError:
        pass


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tokens: the file cannot be read"):
        read_tokens(tmp_path / "tokens")
