"""Amounts that are a number or a percentage, as rolling updates and budgets use them. Pure."""

from __future__ import annotations

import re

from kvestigate.cluster.plane.kinds.checks import not_negative
from kvestigate.kube import causes
from kvestigate.kube.causes import Causes

Amount = int | str

_matches_percent = re.compile("[0-9]+%").fullmatch
_NO_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def validate_amount(path: str, amount: Amount) -> Causes:
    if isinstance(amount, int):
        yield from not_negative(path, amount)
    elif not _matches_percent(amount):
        yield causes.invalid(path, amount, _NO_PERCENT)


def validate_at_most_all(path: str, amount: Amount) -> Causes:
    if is_percent(amount) and value(amount) > 100:
        yield causes.invalid(path, amount, "must not be greater than 100%")


def is_percent(amount: Amount) -> bool:
    return isinstance(amount, str) and _matches_percent(amount) is not None


def value(amount: Amount) -> int:
    """The number, or the percentage; 0 for what is neither."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    return int(digits) if digits.isascii() and digits.isdecimal() else 0
