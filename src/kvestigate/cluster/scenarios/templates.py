"""Puts values into manifests: `{{n}}`, `{{n:02}}`, `{{node}}`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kvestigate.errors import InputError

_PLACE = re.compile(r"\{\{ *(?P<name>[A-Za-z][A-Za-z0-9]*)(?::(?P<width>0[1-9]))? *\}\}")


def filled(value: Any, values: Mapping[str, Any], path: str) -> Any:
    """The value with every place in its strings filled; a string that is one place is replaced."""
    if isinstance(value, str):
        return _filled(value, values, path)
    if isinstance(value, dict):
        return {
            str(_filled(key, values, path)): filled(inner, values, f"{path}.{key}")
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [filled(inner, values, f"{path}[{i}]") for i, inner in enumerate(value)]
    return value


def _filled(text: str, values: Mapping[str, Any], path: str) -> Any:
    whole = _PLACE.fullmatch(text)
    if whole is not None and whole["width"] is None:
        return _value(whole, values, path)
    return _PLACE.sub(lambda place: _written(place, values, path), text)


def _written(place: re.Match[str], values: Mapping[str, Any], path: str) -> str:
    value = _value(place, values, path)
    return str(value).rjust(int(place["width"]), "0") if place["width"] else str(value)


def _value(place: re.Match[str], values: Mapping[str, Any], path: str) -> Any:
    try:
        return values[place["name"]]
    except KeyError:
        known = ", ".join(f"{{{{{name}}}}}" for name in sorted(values)) or "no placeholders"
        raise InputError(f"{place[0]} is not defined here; use {known}", where=path) from None
