"""What a YAML scalar without quotes is to PyYAML's safe loader. Pure."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from kvestigate.kube.yaml_scalars import MANY_DIGITS, NOT_FINITE, NUMBER_STARTS, WORDS, NotFinite

_OWN_WORDS = {word: value for word, value in WORDS.items() if word not in ("y", "Y", "n", "N")}
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*(?::[0-5]?[0-9])*)")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)"
    r"|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(?:\.(\d*))?"
    r"(?:[ \t]*(?:(Z)|([-+])(\d\d?)(?::(\d\d))?))?",
    re.ASCII,
)


def scalar(text: str) -> Any:
    """As PyYAML has it, but a date or time is its text in Python, since JSON has none."""
    if text in _OWN_WORDS:
        return _OWN_WORDS[text]
    if text[0] not in NUMBER_STARTS:
        return text
    if NOT_FINITE.fullmatch(text):
        raise NotFinite(text)
    if _INTEGER.fullmatch(text):
        return _integer(text.replace("_", ""), text)
    if _FLOAT.fullmatch(text):
        return _base_60(text.replace("_", ""), float)
    if day := _DATE.fullmatch(text):
        return str(date(int(day[1]), int(day[2]), int(day[3])))
    if moment := _TIME.fullmatch(text):
        return _moment(moment)
    return text


def _integer(digits: str, text: str) -> Any:
    unsigned = digits.lstrip("+-")
    if len(unsigned) > MANY_DIGITS or unsigned in ("0b", "0x"):
        return text  # more digits than Python converts, or none
    if ":" in unsigned:
        return _base_60(digits, int)
    base = {"0b": 2, "0x": 16}.get(unsigned[:2], 8 if unsigned[0] == "0" else 10)
    value = int(unsigned, base)
    return -value if digits[0] == "-" else value


def _base_60(digits: str, number: type[int] | type[float]) -> int | float:
    """`1:30` is 90, `1:30.5` is 90.5."""
    value: int | float = 0
    for part in digits.lstrip("+-").split(":"):
        value = value * 60 + number(part)
    return -value if digits[0] == "-" else value


def _moment(match: re.Match[str]) -> str:
    *when, fraction, utc, sign, hours, minutes = match.groups()
    zone = UTC if utc else None
    if sign:
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        zone = timezone(-offset if sign == "-" else offset)
    year, month, day, hour, minute, second = map(int, when)
    microsecond = int(((fraction or "") + "000000")[:6])
    return str(datetime(year, month, day, hour, minute, second, microsecond, zone))
