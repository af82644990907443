"""From one type to another: `int('5')`, `string(1.5)`."""

from __future__ import annotations

import math
import re
from typing import Any

from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.library import times
from kvestigate.kube.cel.signatures import Library
from kvestigate.kube.cel.values import NANO, Duration, Timestamp, Uint, number_text

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 1_000
_DOUBLE = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?[Ii]nf|NaN")
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "false", "FALSE", "False"), False),
}


def _unconvertible(source: str, target: str) -> EvalError:
    return EvalError(f"type conversion error from '{source}' to '{target}'")


def _int(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise EvalError("integer overflow")
    return int(value)


def _uint(value: int) -> Uint:
    if not 0 <= value < 2**64:
        raise EvalError("unsigned integer overflow")
    return Uint(value)


def _int_of_double(value: float) -> int:
    if math.isnan(value) or math.isinf(value) or not -(2**63) < value < 2**63:
        raise EvalError("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> Uint:
    if math.isnan(value) or not 0 <= value < 2**64:
        raise EvalError("unsigned integer overflow")
    return Uint(int(value))


def _is_short_integer(text: str) -> bool:
    """Whether Python reads it: thousands of digits are an error of its own."""
    return len(text) <= _MOST_DIGITS and _INTEGER.fullmatch(text) is not None


def _parsed_int(text: str) -> int:
    if not _is_short_integer(text) or not -(2**63) <= int(text) < 2**63:
        raise _unconvertible("string", "int")
    return int(text)


def _parsed_uint(text: str) -> Uint:
    if not _is_short_integer(text) or text[0] in "+-" or int(text) >= 2**64:
        raise _unconvertible("string", "uint")
    return Uint(text)


def _parsed_double(text: str) -> float:
    if not _DOUBLE.fullmatch(text):
        raise _unconvertible("string", "double")
    return float(text)


def _parsed_bool(text: str) -> bool:
    if text not in _BOOLEANS:
        raise _unconvertible("string", "bool")
    return _BOOLEANS[text]


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None


def _same(value: Any) -> Any:
    return value


FUNCTIONS: Library = {
    "bool(bool) -> bool": _same,
    "bool(string) -> bool": _parsed_bool,
    "bytes(bytes) -> bytes": _same,
    "bytes(string) -> bytes": str.encode,
    "double(double) -> double": _same,
    "double(int) -> double": float,
    "double(uint) -> double": float,
    "double(string) -> double": _parsed_double,
    "int(int) -> int": _same,
    "int(uint) -> int": _int,
    "int(double) -> int": _int_of_double,
    "int(string) -> int": _parsed_int,
    "int(timestamp) -> int": lambda time: time.nanos // NANO,
    "uint(uint) -> uint": _same,
    "uint(int) -> uint": _uint,
    "uint(double) -> uint": _uint_of_double,
    "uint(string) -> uint": _parsed_uint,
    "string(string) -> string": _same,
    "string(bool) -> string": lambda value: "true" if value else "false",
    "string(int) -> string": str,
    "string(uint) -> string": lambda value: str(int(value)),
    "string(double) -> string": number_text,
    "string(bytes) -> string": _decoded,
    "string(timestamp) -> string": times.timestamp_text,
    "string(duration) -> string": times.duration_text,
    "timestamp(timestamp) -> timestamp": _same,
    "timestamp(int) -> timestamp": lambda seconds: Timestamp(seconds * NANO),
    "timestamp(string) -> timestamp": times.timestamp,
    "duration(duration) -> duration": _same,
    "duration(int) -> duration": Duration,
    "duration(string) -> duration": times.duration,
}
