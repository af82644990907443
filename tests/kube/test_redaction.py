"""Secrets can be compared and not read."""

from __future__ import annotations

import pytest

from kvestigate.kube.redaction import fingerprint, sized


def test_equal_secrets_have_equal_fingerprints_and_others_do_not() -> None:
    assert fingerprint("a") == fingerprint(b"a") == "sha256:ca978112ca1b"
    assert fingerprint("a") != fingerprint("b")


@pytest.mark.parametrize(
    ("encoded", "told"),
    [
        ("aHVudGVyMg==", "(7 bytes)"),
        ("", "(0 bytes)"),
        ("not base64!", "(hidden)"),
        (5, "(hidden)"),
    ],
)
def test_of_a_value_only_the_size_is_told(encoded: object, told: str) -> None:
    assert sized(encoded) == told
