"""Named formats of strings: `format.dns1123Label().validate(name)`."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import ClassVar
from urllib.parse import urlsplit

import msgspec

from kvestigate.kube import names
from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.library import times
from kvestigate.kube.cel.signatures import Library
from kvestigate.kube.cel.values import NOTHING, Optional

_F = "kubernetes.NamedFormat"
Problems = Callable[[str], list[str]]


class Format(msgspec.Struct, frozen=True):
    TYPE: ClassVar[str] = _F
    name: str


def _prefix(check: Problems) -> Problems:
    """What may still become a name by what is appended."""
    return lambda text: check(text.removesuffix("-") or text)


def _one(text: str, is_right: Callable[[str], bool]) -> Problems:
    return lambda value: [] if is_right(value) else [text]


_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_time(text: str) -> bool:
    try:
        times.timestamp(text)
    except EvalError:
        return False
    return True


FORMATS: dict[str, Problems] = {
    "dns1123Label": names.label_problems,
    "dns1123Subdomain": names.subdomain_problems,
    "dns1035Label": names.label_1035_problems,
    "qualifiedName": names.qualified_name_problems,
    "dns1123LabelPrefix": _prefix(names.label_problems),
    "dns1123SubdomainPrefix": _prefix(names.subdomain_problems),
    "dns1035LabelPrefix": _prefix(names.label_1035_problems),
    "labelValue": names.label_value_problems,
    "uri": _one("invalid URI", lambda text: bool(urlsplit(text).scheme) or text[:1] == "/"),
    "uuid": _one("does not match the UUID format", lambda text: bool(_UUID.fullmatch(text))),
    "byte": _one("invalid base64", _is_base64),
    "date": _one("invalid date", lambda text: bool(_DATE.fullmatch(text))),
    "datetime": _one("invalid datetime", _is_time),
}


def _named(name: str) -> Optional:
    return Optional(True, Format(name)) if name in FORMATS else NOTHING


def _validate(form: Format, text: str) -> Optional:
    """What is wrong with the text; nothing if it is right."""
    found = FORMATS[form.name](text)
    return Optional(True, found) if found else NOTHING


def _constant(name: str) -> Callable[[], Format]:
    return lambda: Format(name)


FUNCTIONS: Library = {
    f"format.named(string) -> optional_type({_F})": _named,
    **{f"format.{name}() -> {_F}": _constant(name) for name in FORMATS},
    f"{_F}::validate(string) -> optional_type(list(string))": _validate,
}
