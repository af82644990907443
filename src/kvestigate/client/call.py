"""One request in the words of Kubernetes, and the exception for an unsuccessful answer."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec

from kvestigate import errors
from kvestigate.http.message import Headers, Request
from kvestigate.kube.resources import Resource

JSON = "application/json"

CONTINUE = "continue"
"""Where `details` of an `Expired` keep the token with which a list goes on from a newer state."""

METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "connect": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
"""The HTTP method of each verb."""


class Call(msgspec.Struct, frozen=True):
    """A verb on a resource, as the server authorises it and error messages name it."""

    verb: str
    """`get list watch create update patch delete deletecollection`, or `connect` for streams"""
    resource: Resource
    namespace: str | None = None
    name: str | None = None
    subresource: str = ""
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON

    def request(self, *extra: tuple[str, str]) -> Request:
        """The HTTP request, with `extra` query parameters."""
        fields = [("accept", self.accept)]
        if self.body:
            fields.append(("content-type", self.content_type))
        return Request(
            method=METHODS[self.verb],
            path=self.resource.path(
                namespace=self.namespace, name=self.name, subresource=self.subresource
            ),
            query=urlencode([*self.query, *extra]),
            headers=Headers(fields),
            body=self.body,
        )

    def __str__(self) -> str:
        """`get pods/log "web-0" in namespace "shop"`."""
        target = self.resource.qualified
        if self.subresource:
            target = f"{self.resource.plural}/{self.subresource}"
            target += f".{self.resource.group}" if self.resource.group else ""
        text = f"{self.verb} {target}"
        if self.name:
            text += f' "{self.name}"'
        if self.resource.namespaced:
            text += f' in namespace "{self.namespace}"' if self.namespace else " in all namespaces"
        return text


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a collection: the namespace and the server-side selectors."""

    namespace: str | None = None
    """None for all namespaces."""
    labels: str = ""
    """`app=web,tier!=db`"""
    fields: str = ""
    """`spec.nodeName=node-1`"""
    extra: dict[str, str] = msgspec.field(default_factory=dict)
    """Further query parameters, such as `resourceVersion`."""

    def query(self) -> tuple[tuple[str, str], ...]:
        return parameters(labelSelector=self.labels, fieldSelector=self.fields, **self.extra)


def parameters(**values: str | int | bool | None) -> tuple[tuple[str, str], ...]:
    """Query parameters, without those that say nothing (None, empty, False)."""
    return tuple(
        (name, "true" if value is True else str(value))
        for name, value in values.items()
        if value is not None and value is not False and value != ""
    )


class _StatusMeta(msgspec.Struct):
    continue_: str = msgspec.field(name="continue", default="")


class _Status(msgspec.Struct):
    metadata: _StatusMeta | None = None
    kind: str = ""
    reason: str | None = None
    message: str | None = None
    code: int | None = None
    details: dict[str, Any] | None = None


_STATUS = msgspec.json.Decoder(_Status)


def failure(call: Call | Request, code: int, body: bytes) -> errors.ApiError:
    """The exception for an answer other than success."""
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        status = _Status()
    if status.kind != "Status":
        return _bare(call, code, body)
    error = errors.from_status(
        {
            "reason": status.reason,
            "message": status.message,
            "details": status.details,
            "code": status.code,
        },
        code=code,
    )
    if status.metadata and status.metadata.continue_:
        error.details[CONTINUE] = status.metadata.continue_
    if isinstance(error, errors.NotFound) and unserved(error) and isinstance(call, Call):
        return _unserved(call)
    return error


def unserved(error: errors.NotFound) -> bool:
    """Whether the server does not know the *type*, rather than this one object."""
    return not error.details.get("name")


def _bare(call: Call | Request, code: int, body: bytes) -> errors.ApiError:
    """Proxies, load balancers and unknown paths answer without a Status."""
    request = call if isinstance(call, Request) else None
    shown = f"{request.method} {request.path}" if request else str(call)
    if code == 401:
        return errors.Unauthorized(f"the server does not know who you are: cannot {shown}")
    if code == 403:
        return errors.Forbidden(f"forbidden: you cannot {shown}")
    if code == 404 and isinstance(call, Call):
        return _unserved(call)
    first_line = _first_line(body)
    answered = f"the server answered {code} to {shown}"
    return errors.from_status(
        {"message": f"{answered}: {first_line}" if first_line else answered}, code=code
    )


def _unserved(call: Call) -> errors.NotFound:
    resource = call.resource
    return errors.NotFound(
        f"the server does not serve {resource.qualified} in {resource.api_version}",
        details={"group": resource.group, "kind": resource.plural},
        hint="the custom resource definition may be missing, or the server too old",
    )


def _first_line(body: bytes) -> str:
    # A proxy's error page would drown the message; its first line usually names the cause.
    text = body[:400].decode("utf-8", "replace").strip()
    return "" if text.startswith("<") else text.partition("\n")[0]
