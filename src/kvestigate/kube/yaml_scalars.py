"""What a YAML scalar without quotes is: a word, a number or text. Pure.

It depends on who reads the file. kubectl reads manifests: `y` is true, `1.0` is 1, a number that
is too long for Go loses digits. PyYAML reads all other files, as SkyPilot and most Python tools
do: `y` is text, `1.0` is 1.0, a number keeps its digits, `1e3` is text, `1:30` is 90.
"""

from __future__ import annotations

import enum
import re
from typing import Any


class Dialect(enum.Enum):
    """Whose rules a file is read by."""

    KUBECTL = "kubectl"
    """Kubernetes manifests and kubeconfigs."""
    PYTHON = "python"
    """PyYAML's safe loader: task files, workspaces, cyberspaces, Apps, settings."""


_BOOLEANS = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False
    ),
}
WORDS: dict[str, bool | None] = {**_BOOLEANS, **dict.fromkeys(("", "~", "null", "Null", "NULL"))}
NUMBER_STARTS = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?(?:0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

# Far beyond what a float holds, and below what Python refuses to convert.
MANY_DIGITS = 400


class NotFinite(ValueError):
    """A number that YAML has and JSON does not."""


def plain(text: str) -> Any:
    """The value of a scalar without quotes, as kubectl has it."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in NUMBER_STARTS:
        return text
    if NOT_FINITE.fullmatch(text):
        raise NotFinite(text)
    number = _number(text.replace("_", ""))
    return text if number is None else number


def is_text(text: str) -> bool:
    """Whether kubectl reads a scalar without quotes as text, not as a number, boolean or null."""
    try:
        return isinstance(plain(text), str)
    except NotFinite:
        return False


def _number(text: str) -> int | float | None:
    """The number that a plain scalar is, as Go reads and JSON writes it, or None."""
    if len(text) < MANY_DIGITS and _INTEGER.fullmatch(text):
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
