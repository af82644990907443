"""Field selectors: the grammar, the matching and the canonical form of an API server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.kube.field_selectors import FieldSelector, FieldTerm, parse_fields


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (",,", ""),
        ("=", ""),
        ("metadata.name=x", "metadata.name=x"),
        ("metadata.name==x", "metadata.name=x"),
        ("status.phase!=Running,metadata.name=x", "metadata.name=x,status.phase!=Running"),
        ("a=", "a="),
        ("a=b\\,c\\=d\\\\", "a=b\\,c\\=d\\\\"),
        ("a= b", "a= b"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    assert str(parse_fields(text)) == canonical


@pytest.mark.parametrize(
    ("text", "problem", "character"),
    [
        ("metadata.name", "can't understand 'metadata.name'", 1),
        ("a=b,c", "can't understand 'c'", 5),
        ("a=b=c", "unescaped character in value: =", 4),
        ("a=b\\c", "invalid escape sequence: \\c", 4),
        ("a=b\\", "invalid escape sequence: \\", 4),
        ("a>1", "can't understand 'a>1'", 1),
    ],
)
def test_a_mistake_is_named_with_its_position(text: str, problem: str, character: int) -> None:
    with pytest.raises(InputError) as refusal:
        parse_fields(text)
    assert refusal.value.message.endswith(problem)
    assert refusal.value.where == f"field selector {text!r}, character {character}"


@pytest.mark.parametrize(
    ("text", "fields", "matches"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a=b", {}, False),
        ("a=", {}, True),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a=b,c!=d", {"a": "b", "c": "x"}, True),
        ("a=b,c!=d", {"a": "b", "c": "d"}, False),
        ("a=b\\,c", {"a": "b,c"}, True),
    ],
)
def test_matching(text: str, fields: dict[str, str], matches: bool) -> None:
    assert parse_fields(text).matches(fields) is matches


def test_only_an_empty_selector_selects_everything() -> None:
    assert parse_fields(",").selects_everything
    assert not parse_fields("a=").selects_everything


terms = st.builds(
    FieldTerm, st.sampled_from(["a", "b.c"]), st.text("ab,=\\!", max_size=5), st.booleans()
)


@given(st.lists(terms, max_size=4))
def test_every_selector_survives_its_text(wanted: list[FieldTerm]) -> None:
    again = parse_fields(str(FieldSelector(tuple(wanted))))
    assert sorted(again.terms, key=repr) == sorted(wanted, key=repr)
    assert parse_fields(str(again)) == again


@given(st.text(max_size=30) | st.text("ab=!,\\", max_size=20))
def test_garbage_is_refused_and_never_breaks(text: str) -> None:
    try:
        selector = parse_fields(text)
    except InputError:
        return
    assert parse_fields(str(selector)).terms == selector.terms
