"""What a YAML scalar without quotes is, as kubectl reads it: a word, a number or text. Pure."""

from __future__ import annotations

import re
from typing import Any

_BOOLEANS = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False
    ),
}
_WORDS: dict[str, bool | None] = {**_BOOLEANS, **dict.fromkeys(("", "~", "null", "Null", "NULL"))}
_NUMBER_STARTS = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?(?:0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

# Far beyond what a float holds, and below what Python refuses to convert.
_MANY_DIGITS = 400


class NotFinite(ValueError):
    """A number that YAML has and JSON does not."""


def plain(text: str) -> Any:
    """The value of a scalar without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if _NOT_FINITE.fullmatch(text):
        raise NotFinite(text)
    number = _number(text.replace("_", ""))
    return text if number is None else number


def is_text(text: str) -> bool:
    """Whether a scalar without quotes is read as text, rather than a number, boolean or null."""
    try:
        return isinstance(plain(text), str)
    except NotFinite:
        return False


def _number(text: str) -> int | float | None:
    """The number that a plain scalar is, as Go reads and JSON writes it, or None."""
    if len(text) < _MANY_DIGITS and _INTEGER.fullmatch(text):
        value = _integer(text)
        if -(2**63) <= value < 2**63:
            return value
        return _json_float(float(value))
    if _FLOAT.fullmatch(text):
        number = float(text)
        return None if number in (float("inf"), float("-inf")) else _json_float(number)
    return None


def _integer(text: str) -> int:
    digits = text.lstrip("+-").lower()
    base = {"0x": 16, "0b": 2, "0o": 8}.get(digits[:2], 8 if digits[0] == "0" else 10)
    value = int(digits.removeprefix("0o"), base)
    return -value if text[0] == "-" else value


def _json_float(number: float) -> int | float:
    """Go writes a whole float without a fraction, and up to 21 digits without an exponent."""
    if not number.is_integer() or abs(number) >= 1e21:
        return number
    digits, _, exponent = repr(number).partition("e")
    if not exponent:
        return int(digits.removesuffix(".0"))
    whole, _, fraction = digits.partition(".")
    return int(whole + fraction + "0" * (int(exponent) - len(fraction)))
