"""Patterns mean what they mean in RE2."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube import patterns


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^[a-z]+$", "abc", True),
        ("^[a-z]+$", "abc\n", False),
        ("^[$]$", "$", True),
        (r"^a\z", "a", True),
        ("^[[:alpha:]]+$", "aB", True),
        ("^[[:alpha:]]+$", "a1", False),
        ("^(?i)abc$", "ABC", True),
        (r"^\p{L}+$", "été", True),
        (r"^[\pL ]+$", "a b", True),
        (r"^\PC*$", "audit: é", True),
        (r"^\PC*$", "a\x07", False),
        (r"^\P{L}$", "1", True),
        (r"^\p{^L}$", "a", False),
        (r"^[\P{Nd}7]+$", "a7", True),
        (r"^[\P{Nd}7]+$", "a8", False),
        (r"^\pZ$", " ", True),
        (r"^\d$", "٣", False),
        ("[[]", "[", True),
    ],
)
def test_what_matches(pattern: str, text: str, matches: bool) -> None:
    assert bool(patterns.compiled(pattern).search(text)) is matches


@given(st.text())
def test_an_escaped_text_matches_itself_only(text: str) -> None:
    literal = "".join(f"\\{char}" if char in r"\.+*?()|[]{}^$" else char for char in text)
    assert patterns.compiled(f"^{literal}$").search(text)
    assert not patterns.compiled(f"^{literal}$").search(f"{text}x")


def test_what_is_no_pattern() -> None:
    with pytest.raises(re.error):
        patterns.compiled("(")
