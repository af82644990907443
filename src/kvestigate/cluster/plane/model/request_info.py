"""What a request asks for, read off its method, path and query. Pure.

The vocabulary is Kubernetes' own: a resource request has a verb, a group, a version, a
resource, and maybe a namespace, a name and a subresource; everything else is a
non-resource request whose verb is the HTTP method and whose object is the path. Every plane has
its own API root: `/clusters/ID/control-plane`, and `/` for the root plane.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import parse_qsl, unquote

import msgspec

from kvestigate.cluster.plane.model.user import Insider, User
from kvestigate.errors import BadRequest, NotFound
from kvestigate.kube.names import label_problems

_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT64 = range(-(2**63), 2**63)
_NAMED = re.compile(r"(?:^|,)metadata\.name={1,2}([^,=!]+)(?:,|$)")

_MEMORABLE = 512
"""Characters: longer requests are read anew each time, so that nobody can fill the memory."""

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class RequestInfo(msgspec.Struct, frozen=True):
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
    params: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Query parameters; the first value of a repeated one counts."""

    def flag(self, name: str) -> bool:
        """A boolean parameter: true unless it is absent or says otherwise."""
        return _says_yes(self.params.get(name, "0"))

    def integer(self, name: str) -> int | None:
        value = self.params.get(name, "")
        if not value:
            return None
        if not _INTEGER.fullmatch(value):
            raise BadRequest(f'strconv.ParseInt: parsing "{value}": invalid syntax')
        if int(value) not in _INT64:
            raise BadRequest(f'strconv.ParseInt: parsing "{value}": value out of range')
        return int(value)


def _says_yes(value: str) -> bool:
    return value != "0" and value.lower() != "false"


def parse_query(query: str) -> dict[str, str]:
    if not query:
        return {}
    params: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        params.setdefault(key, value)
    return params


def locate(method: str, path: str, query: str) -> tuple[str, RequestInfo]:
    """The plane that a request addresses, and what it asks of that plane."""
    if len(path) + len(query) > _MEMORABLE:
        return _locate(method, path, query)
    return _remembered(method, path, query)


def _locate(method: str, path: str, query: str) -> tuple[str, RequestInfo]:
    plane, inner = split(path)
    return plane, parse(method, inner, query)


# Clients ask for the same again and again.
_remembered = lru_cache(maxsize=2048)(_locate)


def parse(method: str, path: str, query: str) -> RequestInfo:
    """What a request asks for; `path` is percent-encoded and relative to the plane's API root."""
    params = parse_query(query)
    path = unquote(path) if "%" in path else path
    segments = [part for part in path.split("/") if part]
    if "//" in path.strip("/"):
        segments = _bridged(method, path)
    root = segments[0] if segments and not path.startswith("//") else ""
    if root == "api" and len(segments) > 2:
        group, version, rest = "", segments[1], segments[2:]
    elif root == "apis" and len(segments) > 3:
        group, version, rest = segments[1], segments[2], segments[3:]
    else:
        return RequestInfo(method, path, method.lower(), params=params)

    # The old way to watch: a prefix instead of a parameter.
    prefixed = rest[0] == "watch" and len(rest) > 1
    if prefixed:
        rest = rest[1:]
    namespace = ""
    # `namespaces/x` alone is the namespace object; with a third segment it is a scope, except
    # for the namespace's own subresources.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource, *tail = rest
    name = tail[0] if tail else ""
    beyond = "/".join(tail[2:])
    if resource == "namespaces" and not group:
        # None is within another: what follows the name of that leads nowhere.
        beyond = beyond or resource if namespace else beyond
        namespace = namespace or name
    verb = "watch" if prefixed else _verb(method, name, params)
    if not name and "fieldSelector" in params and verb in _COLLECTIVE:
        name = _selected_name(params["fieldSelector"])
    return RequestInfo(
        method,
        path,
        verb,
        group,
        version,
        resource,
        namespace,
        name,
        tail[1] if len(tail) > 1 else "",
        beyond,
        params,
    )


def _bridged(method: str, path: str) -> list[str]:
    """The segments of a path with an empty one among them; none if it leads nowhere.

    For a list an empty namespace is all of them, and what follows `proxy` is for somebody else
    to read.
    """
    segments = path.strip("/").split("/")
    if method == "GET" and segments[-3:-1] == ["namespaces", ""]:
        segments[-3:-1] = []
    if "proxy" in segments:
        end = segments.index("proxy")
        segments[end:] = [part for part in segments[end:] if part]
    return [] if "" in segments else segments


_COLLECTIVE = ("list", "watch", "deletecollection")


def _selected_name(selector: str) -> str:
    """The name that a field selector requires: authorisation may allow the list for it alone."""
    match = _NAMED.search(selector)
    return match[1] if match else ""


def _verb(method: str, name: str, params: Mapping[str, str]) -> str:
    if method == "GET":
        if name:
            return "get"
        return "watch" if "watch" in params and _says_yes(params["watch"]) else "list"
    if method == "DELETE" and not name:
        return "deletecollection"
    return _VERBS.get(method, method.lower())


ROOT = "root"
"""The plane behind `/`; its members' paths never name it."""

_PREFIX = "/clusters/"
_SUFFIX = "/control-plane"


def split(path: str) -> tuple[str, str]:
    """`(plane, path relative to that plane's API root)`."""
    if not path.startswith(_PREFIX):
        return ROOT, path
    plane, separator, rest = path[len(_PREFIX) :].partition(_SUFFIX)
    if not separator and "/" not in plane.rstrip("/"):
        return ROOT, path  # about the plane, not inside it
    if not separator or "/" in plane or (rest and not rest.startswith("/")):
        raise NotFound(f'no API at "{path}": planes are served at /clusters/ID/control-plane')
    if problems := label_problems(plane):
        raise NotFound(f'"{plane}" cannot be the id of a plane: {problems[0]}')
    return plane, rest or "/"


def root_path(plane: str) -> str:
    """The API root of a plane, without a trailing slash."""
    return "" if plane == ROOT else f"{_PREFIX}{plane}{_SUFFIX}"


@dataclass(slots=True)
class Visit:
    """What the server knows of one request; filled in on its way.

    The audit log reads it, also for requests that were refused half-way.
    """

    plane: str = ""
    info: RequestInfo | None = None
    user: User | None = None
    """The authenticated user; None until authentication succeeds."""
    insider: Insider | None = None
    """Who asks, if it is a part of this server: no credentials are sent."""
    impersonated: User | None = None
    """The user that the request is made as, if `user` impersonates another one."""
    allowed: bool = False
    """Whether the authorizer allowed the request."""
    notes: dict[str, str] = field(default_factory=dict)
    """Audit annotations that admission policies and webhooks add."""
