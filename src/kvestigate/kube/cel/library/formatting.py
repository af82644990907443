"""`'%s has %d'.format([name, count])`"""

from __future__ import annotations

import re
from typing import Any

from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.library import times
from kvestigate.kube.cel.values import Duration, Timestamp, TypeValue, number_text, type_name

_CLAUSE = re.compile(r"%(?:(%)|(?:\.(\d+))?([a-zA-Z]))")
_PRECISION = 6
_RAISED = str.maketrans(
    "0123456789-", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b"
)


def format_(template: str, values: list[Any]) -> str:
    left = iter(values)

    def fill(match: re.Match[str]) -> str:
        if match[1]:
            return "%"
        try:
            value = next(left)
        except StopIteration:
            position = len(values)
            raise EvalError(f"index {position} out of range") from None
        return _filled(match[3], None if match[2] is None else int(match[2]), value)

    return _CLAUSE.sub(fill, template)


def _filled(clause: str, precision: int | None, value: Any) -> str:
    if clause == "s":
        return value if isinstance(value, str) else text(value)
    if clause == "d":
        return _decimal(value)
    if clause in ("f", "e"):
        return _real(clause, _PRECISION if precision is None else precision, value)
    if clause in ("x", "X", "o", "b"):
        return _based(clause, value)
    raise EvalError(f'could not parse formatting clause: unrecognized formatting clause "{clause}"')


def text(value: Any) -> str:
    """A value as `%s` shows it at the top, where strings have no quotes."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        entries = sorted((_shown(key), _shown(inner)) for key, inner in value.items())
        return "{" + ", ".join(f"{key}:{inner}" for key, inner in entries) + "}"
    if isinstance(value, Timestamp):
        return times.timestamp_text(value)
    if isinstance(value, Duration):
        return times.duration_text(value)
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, bytes):
        return f'b"{value.decode(errors="replace")}"'
    raise EvalError(
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, "
        "doubles, maps, lists, types, durations, and timestamps, was given "
        f"{type_name(value)}"
    )


def _wrong(clause: str, kinds: str, value: Any) -> EvalError:
    return EvalError(
        f"error during formatting: {clause} clause can only be used on {kinds}, was given "
        f"{type_name(value)}"
    )


def _decimal(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong("decimal", "integers", value)
    return str(int(value))


def _real(clause: str, precision: int, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        kind = "fixed-point" if clause == "f" else "scientific"
        raise _wrong(kind, "doubles", value)
    if clause == "f":
        return f"{value:.{precision}f}"
    mantissa, _, exponent = f"{value:.{precision}e}".partition("e")
    power = exponent.lstrip("+").replace("-0", "-0")
    return f"{mantissa}\u00d710{power.translate(_RAISED)}"


def _based(clause: str, value: Any) -> str:
    if clause in "xX" and isinstance(value, str | bytes):
        digits = (value.encode() if isinstance(value, str) else value).hex()
        return digits.upper() if clause == "X" else digits
    if isinstance(value, bool) and clause == "b":
        return "1" if value else "0"
    if isinstance(value, bool) or not isinstance(value, int):
        kinds = {"o": "octal", "b": "binary"}.get(clause, "hex")
        raise _wrong(kinds, "integers", value)
    return format(int(value), clause)
