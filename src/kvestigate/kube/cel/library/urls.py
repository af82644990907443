"""URLs and their parts."""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

import msgspec

from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.signatures import Library

_U = "kubernetes.URL"
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_PATH_SAFE = "/$&+,:;=@!'()*~%-._"


class Url(msgspec.Struct, frozen=True):
    TYPE: ClassVar[str] = _U
    text: str

    @property
    def parts(self) -> SplitResult:
        return urlsplit(self.text)

    @property
    def host(self) -> str:
        return self.parts.netloc.rpartition("@")[2]


def _parsed(text: str) -> Url:
    if not _is(text):
        raise EvalError(
            "URL parse error during conversion from string: parse "
            f'"{text}": invalid URI for request'
        )
    return Url(text)


def _is(text: str) -> bool:
    """An absolute URI or an absolute path."""
    if not text.startswith("/") and not _SCHEME.match(text):
        return False
    try:
        urlsplit(text).port  # noqa: B018 - reading it checks it
    except ValueError:
        return False
    return True


def _hostname(url: Url) -> str:
    host = url.host
    if host.startswith("["):
        return host[1 : host.index("]")]
    return host.partition(":")[0]


def _port(url: Url) -> str:
    return url.host.rpartition("]")[2].partition(":")[2]


FUNCTIONS: Library = {
    f"url(string) -> {_U}": _parsed,
    "isURL(string) -> bool": _is,
    f"{_U}::getScheme() -> string": lambda url: url.parts.scheme,
    f"{_U}::getHost() -> string": lambda url: url.host,
    f"{_U}::getHostname() -> string": _hostname,
    f"{_U}::getPort() -> string": _port,
    f"{_U}::getEscapedPath() -> string": lambda url: quote(url.parts.path, safe=_PATH_SAFE),
    f"{_U}::getQuery() -> map(string, list(string))": (
        lambda url: parse_qs(url.parts.query, keep_blank_values=True)
    ),
}
