"""Stored objects in the form the client asked for: as they are, as rows, or metadata only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.request.body import internal_type
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.negotiate import Form
from kvestigate.cluster.plane.response import answer, tables
from kvestigate.cluster.plane.store.model import Item
from kvestigate.errors import NotAcceptable
from kvestigate.http.message import Response


def one(call: Call, item: Item, status: int = 200) -> Response:
    """An object as the whole answer."""
    data = single(call, item)
    response = answer.json_bytes(data, status, call.warnings)
    return answer.as_yaml(response) if call.form.yaml else response


def made(call: Call, value: Any) -> Response:
    """An answer that is not a stored object: a review, a token, a Status."""
    response = answer.json_value(value, 201, call.warnings)
    return answer.as_yaml(response) if call.form.yaml else response


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
        return answer.encode(table)
    if form.form is Form.METADATA_LIST:
        raise not_a_list(call)
    return answer.encode(_partial(item, form.api_version))


def not_a_list(call: Call) -> NotAcceptable:
    return NotAcceptable(
        "you requested PartialObjectMetadataList, but the requested object is not a list "
        f"(*{internal_type(call.kind)})"
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
            "you requested PartialObjectMetadata, but the requested object is a list "
            f"(*{internal_type(call.kind)}List)"
        )
    else:
        body = await _partials(call, items, metadata)
    await call.breathe()  # to encrypt the first of it takes as long again
    response = answer.json_bytes(body, 200, call.warnings)
    return await answer.as_long_yaml(response, call.breathe) if form.yaml else response


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
    start = answer.encode(
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
        return [answer.encode(table)]
    return await _filled(
        call,
        answer.encode({**table, "rows": []}),
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
        answer.encode(whole),
        items,
        _PARTIALS,
        lambda some: [_partial(item, api_version) for item in some],
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
        pieces.append(answer.encode(make(items[start : start + size]))[1:-1])
    pieces.append(b"]}")
    return pieces


def _partial(item: Item, api_version: str) -> dict[str, Any]:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version,
        "metadata": msgspec.Raw(_metadata.decode(item.data).metadata),
    }


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_metadata = msgspec.json.Decoder(_Metadata)
