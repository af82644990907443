"""From the values of expressions to those of JSON. Pure."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from kvestigate.kube.apply.checking import Foreign
from kvestigate.kube.cel.library import times
from kvestigate.kube.cel.values import Duration, Timestamp, Uint, type_name

_EXACT = 2**53
"""From here on doubles are not exact, so that integers become text."""


class Inexpressible(Exception):
    """A value that JSON has no place for."""


def configuration(value: Any) -> Any:
    """A value as a part of a configuration, where what has no place in JSON will not fit."""
    return _converted(value, _as_it_is)


def json_value(value: Any) -> Any:
    return _converted(value, _as_json)


def _converted(value: Any, scalar: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                told = f"unsupported type conversion from '{type_name(key)}' to string"
                raise Inexpressible(told)
        return {key: _converted(inner, scalar) for key, inner in value.items()}
    if isinstance(value, list):
        return [_converted(inner, scalar) for inner in value]
    if type(value) is float and value.is_integer():
        return int(value)
    return scalar(value)


def _as_it_is(value: Any) -> Any:
    if value is None:
        return Foreign("0", "NULL_VALUE", "structpb.NullValue")
    if isinstance(value, bytes):
        listed = ", ".join(f"{byte:#x}" for byte in value)
        return Foreign(f"[]uint8{{{listed}}}", f"[{' '.join(map(str, value))}]", "[]uint8")
    if isinstance(value, Duration):
        return Foreign(str(value.nanos), times.duration_text(value), "time.Duration")
    if isinstance(value, Timestamp):
        return Foreign("time.Time{}", times.timestamp_text(value), "time.Time")
    return int(value) if isinstance(value, Uint) else value


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Duration):
        return times.duration_text(value)
    if isinstance(value, Timestamp):
        return times.timestamp_text(value)
    if isinstance(value, bool | str | float) or value is None:
        return value
    if isinstance(value, int):
        return int(value) if -_EXACT < value < _EXACT else str(int(value))
    raise Inexpressible(f"unsupported type conversion from '{type_name(value)}' to google.protobuf")
