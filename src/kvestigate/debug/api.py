"""`debug api`: one GET request, with the status, times and headers of the answer."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import quote

import msgspec

from kvestigate.client.access import Access
from kvestigate.client.call import failure
from kvestigate.client.connect import connect
from kvestigate.errors import ApiError, DeadlineExceeded, InputError, nearest
from kvestigate.http.message import Headers, Request
from kvestigate.kube.builtins import registry
from kvestigate.operation import param

OF_INTEREST = (
    "content-type",
    "audit-id",
    "cache-control",
    "warning",
    "retry-after",
    "www-authenticate",
    "x-kubernetes-pf-flowschema-uid",
    "x-kubernetes-pf-prioritylevel-uid",
    "server",
    "via",
)
"""Headers that show a proxy in front of the server, or throttling."""

_NAMESPACE = re.compile(r"(/api/[^/]+|/apis/[^/]+/[^/]+)/namespaces/([^/]+)/([^/]+)$")

BODY_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RequestOptions:
    path: Annotated[str, param("Path of the API server.", argument=True)] = "/version"
    """`/api/v1/nodes?limit=1`; characters that need percent-encoding are encoded."""


@dataclass(frozen=True, slots=True)
class Answer:
    method: str
    path: str
    status: int
    head_seconds: float
    """Until the response headers arrived, connecting included."""
    total_seconds: float
    size: int
    """Bytes of the body, decompressed."""
    headers: dict[str, str]
    """The headers in `OF_INTEREST`."""
    body: str
    truncated: bool = field(default=False)

    def failure(self) -> ApiError | None:
        """The error that other commands raise for this answer; None if it is a success."""
        if 200 <= self.status < 300:
            return None
        error = failure(_request(self.path), self.status, self.body.encode())
        if self.status == 404 and not error.details.get("name"):
            error.hint = near_path(self.path)
        return error


async def collect(access: Access, options: RequestOptions) -> Answer:
    """One attempt without retries, which would hide problems."""
    request = _request(options.path)
    started = time.perf_counter()
    async with connect(access) as api:
        timeout = api.exchange.timeout
        incoming = await api.exchange.transport.send(request, timeout=timeout)
        head = time.perf_counter()
        try:
            async with asyncio.timeout(timeout):
                body = await incoming.read()
        except TimeoutError:
            raise DeadlineExceeded(
                f"the response body of {options.path} was not complete within {timeout:g} s"
            ) from None
        finally:
            await incoming.aclose()
    done = time.perf_counter()
    return Answer(
        method=request.method,
        path=options.path,
        status=incoming.status,
        head_seconds=head - started,
        total_seconds=done - started,
        size=len(body),
        headers={
            name: ", ".join(incoming.headers.get_all(name))
            for name in OF_INTEREST
            if name in incoming.headers
        },
        body=body[:BODY_LIMIT].decode("utf-8", "replace"),
        truncated=len(body) > BODY_LIMIT,
    )


_ROOTS = ("/api", "/apis", "/version", "/healthz", "/livez", "/readyz", "/metrics", "/openapi/v3")


def near_path(target: str) -> str:
    """The hint for an unknown path: the most similar known path."""
    path = target.partition("?")[0].rstrip("/")
    inside = _NAMESPACE.match(path)
    # Compared without the namespace, because its name says nothing about the type.
    wanted = f"{inside[1]}/{inside[3]}" if inside else path
    known = [*_ROOTS, *(resource.path() for resource in registry())]
    suggestion = nearest(wanted, known, cutoff=0.75)
    if suggestion in ("", wanted):
        return "`kvestigate debug api /apis` lists the API groups of the server"
    if inside:
        prefix, _, plural = suggestion.rpartition("/")
        suggestion = f"{prefix}/namespaces/{inside[2]}/{plural}"
    return f"did you mean {suggestion}?"


def indented(body: str) -> str:
    """A JSON body indented by two spaces; any other body unchanged."""
    try:
        return msgspec.json.format(body, indent=2)
    except msgspec.DecodeError:
        return body


def _request(target: str) -> Request:
    if not target.startswith("/"):
        raise InputError(
            f"the path {target!r} does not start with /",
            where="PATH",
            hint=f"write /{target}; `kvestigate debug api /api/v1` lists the resources of v1",
        )
    path, _, query = target.partition("?")
    return Request(
        "GET",
        quote(path, safe="/%:@!$&'()*+,;=~"),
        quote(query, safe="/%:@!$&'()*+,;=~?"),
        Headers([("accept", "application/json, */*")]),
    )
