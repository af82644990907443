"""What a request asks for, read off its method, path and query. Pure.

The vocabulary is Kubernetes' own: a resource request has a verb, a group, a version, a
resource, and maybe a namespace, a name and a subresource; everything else is a
non-resource request whose verb is the HTTP method and whose object is the path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from kvestigate.errors import BadRequest

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"", "0", "f", "F", "false", "FALSE", "False"})

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Asked:
    """The parsed intent of one request, relative to a plane's API root."""

    method: str
    path: str
    """Decoded, relative to the plane: `/api/v1/namespaces/default/pods/web`."""
    verb: str
    """`get list watch create update patch delete deletecollection`, or the lower-case method."""
    group: str = ""
    version: str = ""
    resource: str = ""
    """The plural; empty for a non-resource request."""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """What follows the subresource: the path handed to a proxy."""
    params: Mapping[str, str] = field(default_factory=dict)
    """Query parameters; the first value of a repeated one counts."""

    def flag(self, name: str) -> bool:
        """A boolean parameter."""
        value = self.params.get(name, "")
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        raise BadRequest(f'invalid boolean "{value}" for query parameter {name}')

    def integer(self, name: str) -> int | None:
        value = self.params.get(name, "")
        if not value:
            return None
        try:
            return int(value)
        except ValueError:
            raise BadRequest(f'invalid integer "{value}" for query parameter {name}') from None


def parse_query(query: str) -> dict[str, str]:
    if not query:
        return {}
    params: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        params.setdefault(key, value)
    return params


def parse(method: str, path: str, query: str) -> Asked:
    """Read a request's intent; `path` is percent-encoded and relative to the plane's root."""
    params = parse_query(query)
    encoded = path.split("/")
    segments = [unquote(part) if "%" in part else part for part in encoded if part]
    root = segments[0] if segments else ""
    if root == "api" and len(segments) > 2:
        group, version, rest = "", segments[1], segments[2:]
    elif root == "apis" and len(segments) > 3:
        group, version, rest = segments[1], segments[2], segments[3:]
    else:
        return Asked(method, unquote(path), method.lower(), params=params)

    namespace = ""
    # `namespaces/x` alone is the namespace object; with a third segment it is a scope, except
    # for the namespace's own subresources.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource, *tail = rest
    name = tail[0] if tail else ""
    if resource == "namespaces" and not group:
        namespace = name
    return Asked(
        method,
        unquote(path),
        _verb(method, name, params),
        group,
        version,
        resource,
        namespace,
        name,
        tail[1] if len(tail) > 1 else "",
        "/".join(tail[2:]),
        params,
    )


def _verb(method: str, name: str, params: Mapping[str, str]) -> str:
    if method in ("GET", "HEAD"):
        if params.get("watch", "") in _TRUE:
            return "watch"
        return "get" if name else "list"
    if method == "DELETE" and not name:
        return "deletecollection"
    return _VERBS.get(method, method.lower())
