"""Bytes to typed views.

Kubernetes writes `null` for an empty list or map now and then: whichever Go slice was nil
and is not marked `omitempty`. Declaring every field of every view optional would cost each
reader a check, so the fast path expects none; a document that has some is decoded again
without them, item by item, so that one odd object does not slow down a page.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from kvestigate.errors import InputError
from kvestigate.kube.views.meta import View

T = TypeVar("T")


class ListMeta(View, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    """The token for the next page; empty on the last one."""
    remaining_item_count: int | None = None


class ListPage(View, Generic[T], frozen=True):
    """One page of a list."""

    metadata: ListMeta = ListMeta()
    items: tuple[T, ...] = ()


class _RawPage(View, frozen=True):
    metadata: ListMeta = ListMeta()
    items: tuple[msgspec.Raw, ...] | None = None


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder_for(type_: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a type, built once: building one takes far longer than using it."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    return decoder


def decode(data: bytes, type_: type[T], *, where: str | None = None) -> T:
    """One object. InputError, with `where` in front, if it is not JSON or does not fit."""
    try:
        return decoder_for(type_).decode(data)
    except msgspec.ValidationError:
        return _without_nulls(data, type_, where)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not JSON: {error}", where=where) from error


def decode_page(data: bytes, type_: type[T], *, where: str | None = None) -> ListPage[T]:
    """One page of a list of objects."""
    try:
        return decoder_for(ListPage[type_]).decode(data)  # type: ignore[valid-type] # at run time
    except msgspec.ValidationError:
        page = decode(data, _RawPage, where=where)
        items = tuple(decode(bytes(item), type_, where=where) for item in page.items or ())
        return ListPage(metadata=page.metadata, items=items)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not JSON: {error}", where=where) from error


def _without_nulls(data: bytes, type_: type[T], where: str | None) -> T:
    try:
        # Through bytes, because a part that is kept as bytes cannot come out of values.
        return decoder_for(type_).decode(msgspec.json.encode(_pruned(msgspec.json.decode(data))))
    except msgspec.ValidationError as error:
        name = getattr(type_, "__name__", str(type_))
        raise InputError(f"not a {name}: {error}", where=where) from error


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_pruned(inner) for inner in value if inner is not None]
    return value
