"""The string formats that a schema may ask for. Pure."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from urllib.parse import urlsplit

from kvestigate.kube import names

Check = Callable[[str], bool]


def _parses(parse: Callable[[str], object]) -> Check:
    def check(value: str) -> bool:
        try:
            parse(value)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _matches(pattern: str) -> Check:
    compiled = re.compile(pattern, re.ASCII)
    return lambda value: compiled.fullmatch(value) is not None


_TIME = _matches(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_DAY = _matches(r"\d{4}-\d\d-\d\d")
_is_time = _parses(lambda value: datetime.fromisoformat(value.upper()))
_is_day = _parses(date.fromisoformat)
_HEX = "[0-9A-Fa-f]"


def _uuid(version: str) -> Check:
    variant = "[89abAB]" if version in "45" else _HEX
    digit = version or _HEX
    return _matches(
        f"{_HEX}{{8}}-?{_HEX}{{4}}-?{digit}{_HEX}{{3}}-?{variant}{_HEX}{{3}}-?{_HEX}{{12}}"
    )


def _is_uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme) or value.startswith("/")


_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
_UNIT = r"(?:ns|us|µs|ms|s|m|h|d|w|days?|hours?|minutes?|seconds?|weeks?)"

_is_base64 = _parses(lambda value: base64.b64decode(value, validate=True))

FORMATS: dict[str, Check] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "byte": lambda value: value != "" and _is_base64(value),
    "cidr": _parses(lambda value: ipaddress.ip_network(value, strict=False)),
    "date": lambda value: _DAY(value) and _is_day(value),
    "date-time": lambda value: _TIME(value) and _is_time(value),
    "datetime": lambda value: _TIME(value) and _is_time(value),
    "duration": _matches(rf"[-+]?(?:{_NUMBER}\s*{_UNIT}\s*)+|0"),
    "email": _matches(r"[^@\s]+@[^@\s]+"),
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": lambda value: not names.subdomain_problems(value.lower().rstrip(".")),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "k8s-long-name": lambda value: not names.subdomain_problems(value),
    "k8s-short-name": lambda value: not names.label_problems(value),
    "mac": _matches(f"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}"),
    "uri": _is_uri,
    "uuid": _uuid(""),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
}

UNCHECKED = frozenset(
    {
        "int32",
        "int64",
        "float",
        "double",
        "password",
        "creditcard",
        "isbn",
        "isbn10",
        "isbn13",
        "rgbcolor",
        "ssn",
        "int-or-string",
    }
)
"""Known, but of numbers, or too loose to be worth a rule."""
