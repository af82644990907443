"""The words of Go's decoder for texts that are no JSON (as kube-apiserver passes them on)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.kube.json_syntax import complaint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "unexpected end of JSON input"),
        ('{"a":', "unexpected end of JSON input"),
        ("not", "invalid character 'o' in literal null (expecting 'u')"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("{x", "invalid character 'x' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("1 2", "invalid character '2' after top-level value"),
        ('"a\nb"', r"invalid character '\n' in string literal"),
        (r'"\x"', "invalid character 'x' in string escape code"),
        (r'"\u12g"', "invalid character 'g' in \\u hexadecimal character escape"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("'", r"invalid character '\'' looking for beginning of value"),
        ("\x7f", r"invalid character '\x7f' looking for beginning of value"),
        ("\x8e", r"invalid character '\u008e' looking for beginning of value"),
        ("[" * 10_000, "unexpected end of JSON input"),
        ("[" * 10_001, "invalid character '[' exceeded max depth"),
        ('{"a":' * 10_001, "invalid character '{' exceeded max depth"),
        ('{"a":[{"b":null},true],"c":{}}', ""),
    ],
)
def test_the_first_mistake_is_told(text: str, words: str) -> None:
    assert complaint(text) == words


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_json_has_no_mistake(value: object) -> None:
    assert complaint(json.dumps(value)) == ""


@given(st.text(alphabet='{}[]",:0-1eE.truefalsn \\u\n', max_size=20))
def test_whatever_is_no_json_has_one(text: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        assert complaint(text) != ""
    else:
        assert complaint(text) == ""
