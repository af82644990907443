"""Responses of the API server: JSON, YAML, Status, warnings."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.negotiate import Form
from kvestigate.cluster.plane.response import tables
from kvestigate.cluster.plane.store.model import Item
from kvestigate.errors import NotAcceptable
from kvestigate.http.message import Request, Response
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


LONG = 8_192
"""Bytes of JSON that take a while to become YAML: that is done beside the loop."""


async def as_long_yaml(
    response: Response,
    breathe: Callable[[], Awaitable[None]],
    aside: Callable[[Callable[[], bytes]], Awaitable[bytes]],
) -> Response:
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
                convert = partial(_item_in_yaml, item)
                long = len(memoryview(item)) > LONG
                parts.append(await aside(convert) if long else convert())
        else:
            parts.append(written({name: msgspec.json.decode(value)}).encode())
    return _in_yaml(response, parts)


def _item_in_yaml(item: msgspec.Raw) -> bytes:
    return written([msgspec.json.decode(item)]).encode()


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


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Document:
    body: bytes
    media: str = "application/json"
    digest: str = field(init=False)
    """Of the content, in upper-case hexadecimal."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha512(self.body).hexdigest().upper())

    @property
    def tag(self) -> str:
        return f'"{self.digest}"'

    def answer(self, request: Request, caching: str) -> Response:
        """The document, or 304 for a client that has it."""
        headers = [("cache-control", caching), ("etag", self.tag), ("vary", "Accept")]
        if self.tag in request.headers.get("if-none-match"):
            return Response(304, headers)
        return Response(200, [*headers, ("content-type", self.media)], self.body)


def one(call: Call, item: Item, status: int = 200) -> Response:
    """An object as the whole answer."""
    data = single(call, item)
    response = json_bytes(data, status, call.warnings)
    if call.form.yaml and len(data) <= LONG:  # else the server does it beside the loop
        return as_yaml(response)
    return response


def made(call: Call, value: Any) -> Response:
    """An answer that is not a stored object: a review, a token, a Status."""
    if call.form.form is Form.METADATA_LIST:
        raise not_a_list()
    if call.form.form is Form.METADATA and value["kind"] != "Status":
        value = _partial(value["metadata"], call.form.api_version)
    response = json_value(value, 201, call.warnings)
    return as_yaml(response) if call.form.yaml else response


def single(call: Call, item: Item, *, headers: bool = True) -> bytes:
    """An object in the client's form: the answer to a GET, or what a watch event holds.

    `headers` says whether a Table names its columns.
    """
    form = call.form
    if form.form is Form.OBJECT:
        return objects.shown(item, call.served)
    if form.form is Form.TABLE:
        include, now = call.info.params.get("includeObject", ""), call.clock.now()
        table = tables.table(call.served, [item], form.api_version, now, include, headers=headers)
        table["metadata"] = {"resourceVersion": str(item.revision)}
        return encode(table)
    if form.form is Form.METADATA_LIST:
        raise not_a_list()
    return encode(_partial(_metadata_of(item), form.api_version))


def not_a_list() -> NotAcceptable:
    return NotAcceptable(
        "you requested PartialObjectMetadataList, but the requested object is not a list"
    )


async def many(call: Call, items: Sequence[Item], metadata: dict[str, Any]) -> Response:
    """A list as the whole answer. Other planes run while a long list is made."""
    form = call.form
    if form.form is Form.OBJECT:
        ended = {"continue": ""} if call.served.says_continue else {}
        body = await _list(call, items, {**ended, **metadata})
    elif form.form is Form.TABLE:
        body = await _table(call, items, metadata)
    elif form.form is Form.METADATA:
        raise NotAcceptable(
            "you requested PartialObjectMetadata, but the requested object is a list"
        )
    else:
        body = await _partials(call, items, metadata)
    await call.breathe()  # to encrypt the first of it takes as long again
    response = json_bytes(body, 200, call.warnings)
    return await as_long_yaml(response, call.breathe, call.aside) if form.yaml else response


_OBJECTS, _ROWS, _PARTIALS = 16, 4, 16
"""How many of each are made at once: what takes a tenth of a millisecond, unless they are large."""
_LISTED, _FILLED = 16, 4
"""After how many times as many others have their turn even if that was fast."""


async def _list(call: Call, items: Sequence[Item], metadata: dict[str, Any]) -> list[bytes]:
    """The pieces of a List: stored bytes between commas, nothing parsed.

    Items of built-in kinds leave out what the list's own kind says.
    """
    kind = call.served
    resource = kind.resource
    start = encode(
        {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": metadata,
        }
    )
    pieces = [start[:-1], b',"items":[']
    cut = len(kind.head) if kind.trims_list_items else 0
    separator = b"{" if cut else b""
    for number, item in enumerate(items, start=1):
        pieces += (separator, objects.shown(item, kind)[cut:])
        separator = b",{" if cut else b","
        if number % _OBJECTS == 0:
            await (call.breathe() if number % (_OBJECTS * _LISTED) else call.pause())
    pieces.append(b"]}")
    return pieces


async def _table(call: Call, items: Sequence[Item], metadata: dict[str, Any]) -> list[bytes]:
    kind, version, now = call.served, call.form.api_version, call.clock.now()
    include = call.info.params.get("includeObject", "")
    table = {**tables.table(kind, (), version, now, include), "metadata": metadata}
    if not items:
        return [encode(table)]
    return await _filled(
        call,
        encode({**table, "rows": []}),
        items,
        _ROWS,
        lambda some: tables.rows(kind, some, version, now, include),
    )


async def _partials(call: Call, items: Sequence[Item], metadata: dict[str, Any]) -> list[bytes]:
    api_version = call.form.api_version
    whole = {
        "kind": "PartialObjectMetadataList",
        "apiVersion": api_version,
        "metadata": metadata,
        "items": [],
    }
    return await _filled(
        call,
        encode(whole),
        items,
        _PARTIALS,
        lambda some: [_partial(_metadata_of(item), api_version) for item in some],
    )


async def _filled(
    call: Call,
    whole: bytes,
    items: Sequence[Item],
    size: int,
    make: Callable[[Sequence[Item]], list[dict[str, Any]]],
) -> list[bytes]:
    """A document that ends with an empty list, with the encoded items put into that list."""
    pieces = [whole[: -len(b"]}")]]
    for start in range(0, len(items), size):
        if start:
            pieces.append(b",")
            await (call.breathe() if start % (size * _FILLED) else call.pause())
        pieces.append(encode(make(items[start : start + size]))[1:-1])
    pieces.append(b"]}")
    return pieces


def _partial(metadata: Any, api_version: str) -> dict[str, Any]:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version,
        "metadata": metadata,
    }


def _metadata_of(item: Item) -> msgspec.Raw:
    return msgspec.Raw(_metadata.decode(item.data).metadata)


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_metadata = msgspec.json.Decoder(_Metadata)
