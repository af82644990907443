"""Files that are not manifests: their scalars are what PyYAML's safe loader makes of them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.kube.python_scalars import scalar
from kvestigate.kube.yaml_documents import load
from kvestigate.kube.yaml_scalars import Dialect, NotFinite
from kvestigate.render.yaml_text import written


def value_of(scalar: str) -> Any:
    (document,) = load(f"v: {scalar}\n", dialect=Dialect.PYTHON)
    return document.value["v"]


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        *((word, word) for word in ("y", "Y", "n", "N", "1e3", "0o10", "08", "1:60", "0X1F")),
        *((word, True) for word in ("yes", "On", "true", "TRUE")),
        *((word, False) for word in ("no", "OFF", "False")),
        ("1.10", 1.1),
        ('"1.10"', "1.10"),
        ("010", 8),
        ("1_000", 1000),
        ("-0x1F", -31),
        ("1:30", 90),
        ("-1:30.5", -90.5),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("2026-01-05", "2026-01-05"),
        ("2026-1-5 7:08:09.5 -05:30", "2026-01-05 07:08:09.500000-05:30"),
        ("2026-01-05T07:08:09Z", "2026-01-05 07:08:09+00:00"),
    ],
)
def test_scalars_are_what_pyyaml_reads(scalar: str, value: Any) -> None:
    assert value_of(scalar) == value
    assert type(value_of(scalar)) is type(value)


@pytest.mark.parametrize("name", ["1.0", "5.", "2.0e+3", "1_0.5"])
def test_a_float_stays_a_float(name: str) -> None:
    assert isinstance(value_of(name), float)


def test_names_of_one_letter_stay_and_a_word_is_named_as_python_names_it() -> None:
    (document,) = load("{N: 3, Y: why, on: 1, 1: a}", dialect=Dialect.PYTHON)
    assert document.value == {"N": 3, "Y": "why", "True": 1, "1": "a"}


@pytest.mark.parametrize("dialect", Dialect)
def test_a_key_given_twice_is_an_error(dialect: Dialect) -> None:
    with pytest.raises(InputError, match='the key "a" is given twice'):
        load("a: 1\nb: 2\na: 3\n", dialect=dialect)


def test_a_date_that_does_not_exist_is_an_error_with_the_way_out() -> None:
    with pytest.raises(InputError, match="put it in quotes"):
        value_of("2026-02-30")


@pytest.mark.parametrize(
    "value", ["!secret x", "!!python/object:os.system x", "!Ref [a]", "!!python/tuple [1]", "!x {}"]
)
def test_a_tag_that_nobody_knows_is_an_error_as_it_is_to_pyyaml(value: str) -> None:
    with pytest.raises(InputError, match="remove the tag"):
        value_of(value)
    with pytest.raises(yaml.constructor.ConstructorError):
        yaml.safe_load(f"v: {value}")


@pytest.mark.parametrize(
    "value", ["!!str 3", "!!int 3", "!!bool yes", '! "a"', "!!seq [1]", "!!map {a: 1}", "!!null ''"]
)
def test_tags_of_yaml_are_what_they_are_to_pyyaml(value: str) -> None:
    assert value_of(value) == yaml.safe_load(f"v: {value}")["v"]


_WORDS = st.text("0123456789+-_.:eExXbnNyYTtZ ", min_size=1, max_size=14).map(str.strip)


@given(_WORDS.filter(bool))
@example("0b_")
@example("0_")
@example("1:2:3.4_")
@example(".5e+3")
@example("2026-01-01t1:02:03.1234567+1")
def test_every_number_is_what_pyyaml_reads(text: str) -> None:
    resolver: Any = yaml.SafeLoader("")
    tag = resolver.resolve(yaml.ScalarNode, text, (True, False))
    if tag.endswith((":value", ":merge")):
        return
    try:
        expected = resolver.construct_object(yaml.ScalarNode(tag, text))
    except ValueError:
        expected = None
    try:
        found = scalar(text)
    except NotFinite:
        assert isinstance(expected, float)
    except ValueError:
        assert expected is None
    else:
        if isinstance(expected, datetime.date):
            expected = str(expected)
        assert expected is None or (found, type(found)) == (expected, type(expected))


@given(st.dictionaries(st.text(min_size=1), st.text() | st.integers() | st.booleans()))
def test_what_is_written_is_read_the_same_in_both_dialects(document: dict[str, Any]) -> None:
    for dialect in Dialect:
        big = {key for key, value in document.items() if abs(_whole(value)) >= 2**53}
        [read] = load(written({"v": document}), dialect=dialect)
        assert {key: value for key, value in read.value["v"].items() if key not in big} == {
            key: value for key, value in document.items() if key not in big
        }


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0
