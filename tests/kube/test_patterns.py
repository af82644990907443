"""Patterns mean what they mean in RE2."""

from __future__ import annotations

import time

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
        ("b", "abc", True),
        ("(?-s)a.b", "a\nb", False),
        (r"\Qa.b\E", "axb", False),
        (r"^(?P<first>\w)(?<second>.)$", "a漢", True),
    ],
)
def test_what_matches(pattern: str, text: str, matches: bool) -> None:
    assert patterns.compiled(pattern).matches(text) is matches


@given(st.text())
def test_an_escaped_text_matches_itself_only(text: str) -> None:
    literal = "".join(f"\\{char}" if char in r"\.+*?()|[]{}^$" else char for char in text)
    assert patterns.compiled(f"^{literal}$").matches(text)
    assert not patterns.compiled(f"^{literal}$").matches(f"{text}x")


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("(", "missing closing ): `(`"),
        ("[", "missing closing ]: `[`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("x{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"a\Z", r"invalid escape sequence: `\Z`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("\\", "trailing backslash at end of expression"),
        (r"(\pL{500}){2}", "expression too large"),
        ("a" * 8193, "expression too large: more than 8192 characters"),
    ],
)
def test_what_is_no_pattern_is_told_in_the_words_of_go(pattern: str, complaint: str) -> None:
    with pytest.raises(patterns.InvalidPattern) as raised:
        patterns.compiled(pattern)
    assert str(raised.value) == complaint


def test_matches_are_found_in_their_order() -> None:
    words = patterns.compiled("[a-zé]+")
    assert words.find("1 deux trois") == "deux"
    assert words.find("123") == ""
    assert words.find_all("été 1 hiver 2") == ["été", "hiver"]
    assert words.find_all("a b c", 2) == ["a", "b"]
    assert words.find_all("a b c", 0) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 50_000 + "!"),
        ("(a|aa)+$", "a" * 50_000 + "!"),
        ("(x+x+)+y", "x" * 50_000),
        (r"^(\w+\s?)*$", "word " * 10_000 + "!"),
        ("(.*a){20}", "b" * 50_000),
    ],
)
def test_no_pattern_runs_for_ever(pattern: str, text: str) -> None:
    begun = time.process_time()
    assert not patterns.compiled(pattern).matches(text)
    assert time.process_time() - begun < 0.5  # milliseconds; Python's re takes hours


@pytest.mark.parametrize(
    ("pattern", "text"), [("(.{0,1000}|x)*y", "a" * 1_000_000), ("x*y|x", "x" * 100_000)]
)
def test_a_large_pattern_on_a_long_text_is_refused(pattern: str, text: str) -> None:
    begun = time.process_time()
    with pytest.raises(patterns.TooCostly):
        patterns.compiled(pattern).find_all(text)
    assert time.process_time() - begun < 2
