"""Responses of the API server: JSON, YAML, Status, warnings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.http.message import Response
from kvestigate.render.yaml_text import written

_JSON = ("content-type", "application/json")
_NO_CACHE = ("cache-control", "no-cache, private")

_WARNINGS_MAX, _WARNING_MAX = 4096, 256
"""Letters of all warnings together, and of each if there are more."""

encode = msgspec.json.Encoder().encode


def json_bytes(
    body: bytes | Sequence[bytes], status: int = 200, warnings: Sequence[str] = ()
) -> Response:
    headers = [_NO_CACHE, _JSON]
    if warnings:
        headers += [("warning", f'299 - "{_quoted(text)}"') for text in _told(warnings)]
    return Response(status, headers, body)


def json_value(value: Any, status: int = 200, warnings: Sequence[str] = ()) -> Response:
    return json_bytes(encode(value), status, warnings)


def as_yaml(response: Response) -> Response:
    """The same answer for a client that asked for YAML."""
    if not isinstance(response.body, bytes):
        return response
    return _in_yaml(response, written(msgspec.json.decode(response.body)).encode())


async def as_long_yaml(response: Response, breathe: Callable[[], Awaitable[None]]) -> Response:
    """A list as YAML, converted object by object so that other planes can run in between."""
    assert isinstance(response.body, list)
    document = msgspec.json.decode(b"".join(response.body), type=dict[str, msgspec.Raw])
    await breathe()
    parts: list[bytes] = []
    for name, value in document.items():
        if bytes(memoryview(value)[:2]) in (b"[{", b"[["):
            parts.append(f"{name}:\n".encode())
            for item in msgspec.json.decode(value, type=list[msgspec.Raw]):
                await breathe()
                parts.append(written([msgspec.json.decode(item)]).encode())
        else:
            parts.append(written({name: msgspec.json.decode(value)}).encode())
    return _in_yaml(response, parts)


def _in_yaml(response: Response, body: bytes | list[bytes]) -> Response:
    headers = [(name, value) for name, value in response.headers if name != "content-type"]
    return Response(response.status, [*headers, ("content-type", "application/yaml")], body)


def plain(text: str, status: int = 200) -> Response:
    return Response(
        status, [_NO_CACHE, ("content-type", "text/plain; charset=utf-8")], text.encode()
    )


def failure(error: errors.ApiError, warnings: Sequence[str] = ()) -> Response:
    response = json_value(errors.to_status(error), error.http_code, warnings)
    if error.retry_after:
        response.headers.append(("retry-after", str(int(error.retry_after))))
    return response


def success(details: dict[str, Any], code: int = 200, warnings: Sequence[str] = ()) -> Response:
    """The Status that answers a completed deletion."""
    return json_value(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        },
        code,
        warnings,
    )


def _told(warnings: Sequence[str]) -> list[str]:
    """Warnings without repetition, cut to the length that headers may have."""
    once = list(dict.fromkeys(warnings))
    if sum(map(len, once)) <= _WARNINGS_MAX:
        return once
    return [text[:_WARNING_MAX] for text in once[: _WARNINGS_MAX // _WARNING_MAX]]


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
