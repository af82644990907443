"""Kubernetes quantities (`500m`, `1.5Gi`, `12e6`) as exact values.

A quantity is a whole number of nano-units, because Kubernetes rounds everything finer up (away
from zero), plus the notation it was written in, which decides how it is written back. What is
accepted and what `str()` gives is what an API server does, except where that would harm: blanks
around it, a bare suffix (`m`, which the server reads as zero), an exponent beyond 1000 and a text
beyond 256 characters are refused, and a value above the largest suffix keeps that suffix
(`1000E`) where the server drops it and so writes another value.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Final

import msgspec

from kvestigate.errors import InputError

NANO: Final = 10**9
"""Nano-units in one unit."""

_MILLI: Final = 10**6
_MAX_TEXT = 256
_MAX_EXPONENT = 1000
_MAX_BINARY = (2**63 - 1) * NANO
# Up to this many digits the server computes in int64 and may echo the text it was given.
_INT64_DIGITS = 18

_HINT = "write a number with an optional suffix, such as 2, 500m, 1.5Gi, 10G or 12e6"

# Possessive, as digits could else be divided among the groups in too many ways.
_GRAMMAR = re.compile(
    r"([+-]?)(0*+)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[-+]?[0-9]*+)", re.ASCII
)

_DECIMAL_SUFFIXES = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_NAMES = ("", *_BINARY_SUFFIXES)


class Notation(Enum):
    """The family of suffixes a quantity is written with."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


class Quantity(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An exact amount. Equality, order and hash look at the amount only: `1Ki == 1024`."""

    nanos: int
    notation: Notation = Notation.DECIMAL
    text: str = ""
    """What `str()` gives, where that is not derived from the amount: see `parse`."""

    @property
    def millis(self) -> int:
        """In thousandths, rounded away from zero."""
        return _divide_up(self.nanos, _MILLI)

    @property
    def whole(self) -> int:
        """In units, rounded away from zero."""
        return _divide_up(self.nanos, NANO)

    def __float__(self) -> float:
        try:
            return self.nanos / NANO
        except OverflowError:
            return float("inf") if self.nanos > 0 else float("-inf")

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __str__(self) -> str:
        return self.text or _canonical(self.nanos, self.notation)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __ne__(self, other: object) -> bool:
        # Struct has one of its own, which would compare identities.
        return self.nanos != other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self._notation_with(other))

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self._notation_with(other))

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nanos * factor, self.notation)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.notation)

    def _notation_with(self, other: Quantity) -> Notation:
        # The left operand's notation wins, unless it is zero and so was written in none.
        return self.notation if self.nanos else other.notation


ZERO: Final = Quantity(0)


def parse(value: str | int | float) -> Quantity:
    """The quantity a manifest holds: usually a string, but YAML and JSON numbers count too."""
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"quantity {value!r}: expected a string or a number", hint=_HINT)
    return _parse(repr(value))


def millis(value: str | int | float) -> int:
    """Thousandths of a quantity, rounded away from zero: `500m` is 500, `1` is 1000."""
    return parse(value).millis


def whole(value: str | int | float) -> int:
    """Units of a quantity, rounded away from zero: `1500m` is 2, `1Ki` is 1024."""
    return parse(value).whole


def as_float(value: str | int | float) -> float:
    """A quantity as the nearest float, for ratios and charts."""
    return float(parse(value))


# A cluster of any size writes only a few hundred distinct quantities.
@lru_cache(maxsize=8192)
def _parse(text: str) -> Quantity:
    match = _GRAMMAR.fullmatch(text) if 0 < len(text) <= _MAX_TEXT else None
    if match is None:
        raise _error(text, "quantities are a number with an optional sign and suffix")
    sign, zeros, integer, fraction, suffix = match.groups(default="")
    if not (zeros or integer or fraction):
        raise _error(text, "it has no digits")
    power = _BINARY_SUFFIXES.get(suffix)
    if power is None:
        exponent, notation = _decimal_suffix(suffix, text)
        amount, keeps_text = _decimal(integer, fraction, exponent)
    else:
        notation = Notation.BINARY
        amount, keeps_text = _binary(integer, fraction, power)
        if 0 < amount < NANO:
            notation = Notation.DECIMAL
    return Quantity(-amount if sign == "-" else amount, notation, text if keeps_text else "")


def _decimal_suffix(suffix: str, text: str) -> tuple[int, Notation]:
    exponent = _DECIMAL_SUFFIXES.get(suffix)
    if exponent is not None:
        return exponent, Notation.DECIMAL
    digits = suffix[1:]
    if suffix[0] not in "eE" or not digits.lstrip("+-").isdigit():
        raise _error(text, f"{suffix!r} is not a suffix")
    exponent = int(digits)
    if abs(exponent) > _MAX_EXPONENT:
        raise _error(text, f"the exponent {exponent} is beyond {_MAX_EXPONENT}")
    return exponent, Notation.EXPONENT


def _decimal(integer: str, fraction: str, exponent: int) -> tuple[int, bool]:
    digits = (integer or "0") + fraction
    scale = exponent - len(fraction)
    if scale < -9:
        return _divide_up(int(digits), 10 ** (-9 - scale)), False
    # The server echoes a text that it can tell at a glance to be canonical, and that glance is
    # generous: `1.234`, `+5` and `007` come back as they were written.
    keeps_text = (
        len(digits) <= _INT64_DIGITS
        and scale % 3 == 0
        and digits[0] != "0"
        and not digits.endswith("000")
    )
    return int(digits) * 10 ** (scale + 9), keeps_text


def _binary(integer: str, fraction: str, power: int) -> tuple[int, bool]:
    digits = (integer or "0") + fraction
    scaled = (int(digits) << power) * NANO
    if fraction:
        return min(_divide_up(scaled, 10 ** len(fraction)), _MAX_BINARY), False
    precise = len(digits) + power * 3 // 10 <= 14
    return min(scaled, _MAX_BINARY), precise and int(digits) & 7 != 0


def _canonical(nanos: int, notation: Notation) -> str:
    if not nanos:
        return "0"
    if notation is Notation.BINARY and abs(nanos) >= 1024 * NANO and nanos % NANO == 0:
        return _canonical_binary(nanos // NANO)
    last = 18 if notation is Notation.DECIMAL or notation is Notation.BINARY else None
    exponent = -9
    while nanos % 1000 == 0 and exponent != last:
        nanos //= 1000
        exponent += 3
    if last is None:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_NAMES[exponent]}"


def _canonical_binary(units: int) -> str:
    step = 0
    while units % 1024 == 0 and step < len(_BINARY_NAMES) - 1:
        units //= 1024
        step += 1
    return f"{units}{_BINARY_NAMES[step]}"


def _divide_up(dividend: int, divisor: int) -> int:
    quotient, rest = divmod(abs(dividend), divisor)
    quotient += rest > 0
    return -quotient if dividend < 0 else quotient


def _error(text: str, reason: str) -> InputError:
    shown = text if len(text) <= 64 else text[:61] + "..."
    return InputError(f"quantity {shown!r}: {reason}", hint=_HINT)
