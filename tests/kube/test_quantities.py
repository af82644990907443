"""Quantities are exact, written back as an API server writes them, and refuse all else."""

from __future__ import annotations

import math
import string
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kvestigate.errors import InputError
from kvestigate.kube import quantities
from kvestigate.kube.quantities import Notation, Quantity, parse

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

digits = st.text("0123456789", max_size=20)
signs = st.sampled_from(["", "+", "-"])
exponents = st.builds("{}{:d}".format, st.sampled_from("eE"), st.integers(-30, 30))


@st.composite
def numbers(draw: st.DrawFn) -> str:
    integer, fraction = draw(digits), draw(digits)
    assume(integer or fraction)
    dot = "." if fraction or draw(st.booleans()) else ""
    return f"{draw(signs)}{integer}{dot}{fraction}"


decimals = st.tuples(numbers(), st.sampled_from(list(DECIMAL)) | exponents)
binaries = st.tuples(numbers(), st.sampled_from(list(BINARY)))
texts = (decimals | binaries).map("".join)


def exact(number: str, suffix: str) -> Fraction:
    """The value by the documented grammar, before any rounding."""
    value = Fraction(number.removesuffix("."))
    if suffix in BINARY:
        return value * (1 << BINARY[suffix])
    power = DECIMAL[suffix] if suffix in DECIMAL else int(suffix[1:])
    return value * Fraction(f"1e{power}")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0.0", "0"),
        ("-0", "0"),
        ("0Ki", "0"),
        ("1", "1"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("5.", "5."),
        ("+5", "+5"),
        ("007", "007"),
        ("1.234", "1.234"),
        ("1.5", "1500m"),
        ("-1.5", "-1500m"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1000000n", "1m"),
        ("1E", "1E"),
        ("1000E", "1000E"),
        ("1Ki", "1Ki"),
        ("512Ki", "512Ki"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.5Mi", "512Ki"),
        ("1.1Ki", "1126400m"),
        ("0.0001Ki", "102400u"),
        ("0.0000001Ki", "102400n"),
        ("8Ei", "9223372036854775807"),
        ("-8Ei", "-9223372036854775807"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1e+3", "1e+3"),
        ("10e3", "10e3"),
        ("1e4", "10e3"),
        ("1000e3", "1e6"),
        ("1e-4", "100e-6"),
        ("0.5e0", "500e-3"),
        ("1e-12", "1e-9"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "notation"),
    [
        ("1", Notation.DECIMAL),
        ("1E", Notation.DECIMAL),
        ("1E1", Notation.EXPONENT),
        ("1e0", Notation.EXPONENT),
        ("1Ki", Notation.BINARY),
        ("0.0001Ki", Notation.DECIMAL),
    ],
)
def test_notation(text: str, notation: Notation) -> None:
    assert parse(text).notation is notation


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1 ", " 1", "\n1", "1\n", "one", "1,5", "1.2.3", "--1", "+-1", "1-", "0x10"),
        *("1K", "1ki", "1KI", "1mi", "1i", "1kk", "1GB", "1Gib", "1m5", "1e", "1e+", "1e1.5"),
        *("m", "Ki", "-", "+", ".", "-.", ".m", "e3", "NaN", "inf", "1_000", "１", "½", "1e1001"),
        *("1e-1001", "9" * 257),
    ],
)
def test_refusal_names_the_value_and_shows_a_valid_one(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse(text)
    assert repr(text)[:40] in refusal.value.message
    assert "1.5Gi" in (refusal.value.hint or "")


@pytest.mark.parametrize(
    ("value", "canonical"), [(2, "2"), (0, "0"), (-3, "-3"), (0.5, "500m"), (1e-05, "10e-6")]
)
def test_numbers_of_a_manifest_are_quantities(value: float, canonical: str) -> None:
    assert str(parse(value)) == canonical


@pytest.mark.parametrize("value", [True, math.nan, math.inf])
def test_other_values_of_a_manifest_are_not(value: float) -> None:
    with pytest.raises(InputError):
        parse(value)


@pytest.mark.parametrize(
    ("text", "millis", "whole", "number"),
    [
        ("500m", 500, 1, 0.5),
        ("2", 2000, 2, 2.0),
        ("1u", 1, 1, 1e-6),
        ("-1500m", -1500, -2, -1.5),
        ("1Ki", 1024000, 1024, 1024.0),
        ("0", 0, 0, 0.0),
        ("1e400", 10**403, 10**400, math.inf),
        ("-1e400", -(10**403), -(10**400), -math.inf),
    ],
)
def test_conversions_round_away_from_zero(
    text: str, millis: int, whole: int, number: float
) -> None:
    assert quantities.millis(text) == millis
    assert quantities.whole(text) == whole
    assert quantities.as_float(text) == number


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (parse("1Gi") + parse("512Mi"), "1536Mi"),
        (parse("1Gi") + parse("1"), "1073741825"),
        (parse("1k") + parse("24"), "1024"),
        (parse("0") + parse("1Gi"), "1Gi"),
        (parse("0") - parse("1Gi"), "-1Gi"),
        (parse("1") - parse("1Gi"), "-1073741823"),
        (parse("1.234") - parse("0"), "1234m"),
        (parse("250m") * 4, "1"),
        (3 * parse("1Gi"), "3Gi"),
        (-parse("+5"), "-5"),
        (sum([parse("1Gi"), parse("1Gi")], quantities.ZERO), "2Gi"),
        (parse("4Ei") * 1024, "4096Ei"),
    ],
)
def test_arithmetic_keeps_the_left_notation(result: Quantity, text: str) -> None:
    assert str(result) == text


def test_only_zero_is_falsy() -> None:
    assert not parse("0.0Ki")
    assert parse("-1n")
    assert repr(parse("1.5Gi")) == "Quantity('1536Mi')"


@given(decimals)
def test_decimal_values_are_exact_down_to_a_nano(parts: tuple[str, str]) -> None:
    wanted = exact(*parts) * 10**9
    nanos = parse("".join(parts)).nanos
    assert nanos == (math.ceil(wanted) if wanted > 0 else math.floor(wanted))


@given(binaries)
def test_binary_values_are_exact_and_capped(parts: tuple[str, str]) -> None:
    wanted = abs(exact(*parts)) * 10**9
    quantity = parse("".join(parts))
    assert abs(quantity.nanos) == min(math.ceil(wanted), (2**63 - 1) * 10**9)
    assert (quantity.nanos < 0) == (parts[0].startswith("-") and wanted > 0)


@given(texts)
def test_canonical_form_keeps_the_value_and_is_its_own(text: str) -> None:
    quantity = parse(text)
    canonical = str(quantity)
    assert parse(canonical) == quantity
    assert str(parse(canonical)) == canonical


@given(st.lists(st.integers(-(10**24), 10**24), min_size=1), st.sampled_from(Notation))
def test_any_computed_value_is_written_so_that_it_reads_back(
    nanos: list[int], notation: Notation
) -> None:
    total = sum((Quantity(n, notation) for n in nanos), quantities.ZERO)
    assert total.nanos == sum(nanos)
    assert parse(str(total)) == total


@given(texts, texts)
def test_order_is_that_of_the_values(left: str, right: str) -> None:
    a, b = parse(left), parse(right)
    assert (a < b, a <= b, a == b, a >= b, a > b) == (
        a.nanos < b.nanos,
        a.nanos <= b.nanos,
        a.nanos == b.nanos,
        a.nanos >= b.nanos,
        a.nanos > b.nanos,
    )
    assert (a != b) == (a.nanos != b.nanos)
    assert a != b or hash(a) == hash(b)


@given(st.text(max_size=300) | st.text(string.digits + "eEinumkKMGTP+-.", max_size=12))
def test_garbage_is_refused_and_never_breaks(text: str) -> None:
    try:
        quantity = parse(text)
    except InputError:
        return
    assert parse(str(quantity)) == quantity
