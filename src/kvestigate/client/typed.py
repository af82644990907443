"""Objects as callers name their types: a view, a plain dict, or the bytes themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from kvestigate.kube.decode import decode

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=dict[str, Any])
else:
    from typing import TypeVar

    T = TypeVar("T")

OBJECT: Any = dict
"""The type of who names none: the whole object, as a dict."""

Body = Mapping[str, Any] | bytes
"""What may be written. No views: they hold a part of the object, and would drop the rest."""


def encode(body: Body | Sequence[Mapping[str, Any]]) -> bytes:
    """JSON; a JSON patch is a sequence of operations."""
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


def decoded(body: bytes, type: type[T], *, where: str) -> T:
    if type is bytes:
        return cast(T, body)
    return decode(body, type, where=where)
