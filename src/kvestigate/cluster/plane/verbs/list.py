"""list: the selected objects at one revision, in pages that stay stable while others write."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from kvestigate.cluster.plane.request import options, versions
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.selection import Selection, selection
from kvestigate.cluster.plane.response import answer, forms
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import ApiError, BadRequest, Expired, to_status
from kvestigate.http.message import Response

STALE = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
_AT_ONCE, _EXAMINED, _READ = 1000, 128, 16
"""Objects that are taken without a pause: as they come, by what is known of them, or by what is
in them. Each takes a quarter of a millisecond."""
_CHEAP = 4
"""Labels that can be looked at while an object is."""
_BASE64 = re.compile(r"[\w-]*", re.ASCII)
PRESENT = -1
"""As the revision of a continue token: whatever is there when it is used."""


class Continue(msgspec.Struct):
    """Where the next page starts; opaque to clients."""

    rv: int
    namespace: str
    name: str
    v: str = "meta.k8s.io/v1"


class Stale(Exception):
    """The history no longer reaches back to where a token's list began."""

    def __init__(self, point: Continue) -> None:
        super().__init__()
        self._point = point

    def answer(self) -> Response:
        """The refusal of a stale token, with one that goes on regardless."""
        token = _token(Continue(PRESENT, self._point.namespace, self._point.name))
        status = {**to_status(Expired(STALE)), "metadata": {"continue": token}}
        return answer.json_value(status, Expired.code)


@dataclass(frozen=True, slots=True)
class Terms:
    """Which objects are asked for, and how many of them at once."""

    chosen: Selection
    limit: int
    """Zero: no limit."""


class Page(NamedTuple):
    items: list[Item]
    metadata: dict[str, Any]
    """Of the list: its revision, and where the next page starts."""


async def list_(call: Call) -> Response:
    query = terms(call)
    try:
        result = await page(call, query)
    except Stale as stale:
        return stale.answer()
    await call.breathe()
    return await forms.many(call, result.items, result.metadata)


def terms(call: Call) -> Terms:
    """The query's selectors and limit; BadRequest or Invalid if they are malformed."""
    info = call.info
    limit = max(info.integer("limit") or 0, 0)
    info.integer("timeoutSeconds")  # which is of no use here, but has to be a number
    options.check_list(info)
    if info.params.get("resourceVersion") == "0" and not info.params.get("continue"):
        limit = 0  # whoever takes anything gets all of it: so do informers everywhere
    return Terms(selection(info, call.served), limit)


async def page(call: Call, wanted: Terms) -> Page:
    """One page at one revision; Stale if it cannot be had any more."""
    chosen, limit = wanted.chosen, wanted.limit
    state, after = await _start(call, limited=limit > 0)
    collection = state.collection(chosen.kind.key)
    found = collection.items(chosen.namespace or None, after)
    items, more = await _first(call, found, chosen, limit)
    metadata: dict[str, Any] = {"resourceVersion": str(state.revision)}
    if more and items:
        last = items[-1]
        metadata["continue"] = _token(Continue(state.revision, last.namespace, last.name))
        if chosen.everything:
            metadata["remainingItemCount"] = collection.count_after(
                chosen.namespace or None, (last.namespace, last.name)
            )
    return Page(items, metadata)


async def _start(call: Call, *, limited: bool) -> tuple[PlaneState, tuple[str, str] | None]:
    """The state to list and the key to start after."""
    params = call.info.params
    version, match = params.get("resourceVersion", ""), params.get("resourceVersionMatch", "")
    if token := params.get("continue", ""):
        point = _point(token)
        if version and version != "0":
            raise BadRequest("specifying resource version is not allowed when using continue")
        after = (point.namespace, point.name)
        if point.rv == PRESENT:
            return call.plane.state, after
        try:
            return await versions.recalled(call.plane, point.rv, call.breathe), after
        except Expired:
            raise Stale(point) from None
    if version:
        _check_version(version)
    exact = match == "Exact" or (version not in ("", "0") and not match and limited)
    if exact:
        wanted = versions.parse(version)
        return await versions.recalled(call.plane, wanted, call.breathe), None
    versions.at_least(call.plane, version)
    return call.plane.state, None


def _check_version(version: str) -> None:
    try:
        versions.parse(version, versions.FIELD)
    except ApiError as error:
        raise BadRequest(f"invalid resource version: {error.message}") from None


async def _first(
    call: Call, items: Iterator[Item], chosen: Selection, limit: int
) -> tuple[list[Item], bool]:
    """The first of those that are chosen, or all, and whether there are more."""
    page: list[Item] = []
    size = _size(chosen)
    if limit and chosen.everything:
        size = min(size, limit + 1)
    while some := list(islice(items, size)):
        page += some if chosen.everything else filter(chosen.has, some)
        if limit and len(page) > limit:
            return page[:limit], True
        if len(some) < size:
            break
        await call.pause()
    return page, False


def _size(chosen: Selection) -> int:
    """How many are looked at without a pause."""
    if chosen.everything:
        return _AT_ONCE
    known = chosen.fields.selects_everything or chosen.kind.indexes_fields
    size = _EXAMINED if known else _READ
    return max(1, size // (1 + len(chosen.labels.requirements) // _CHEAP))


def _token(point: Continue) -> str:
    return urlsafe_b64encode(msgspec.json.encode(point)).decode().rstrip("=")


def _point(token: str) -> Continue:
    whole = _BASE64.match(token)
    if whole is None or whole.end() < len(token) or len(token) % 4 == 1:
        at = min(whole.end() if whole else 0, len(token) - 1)
        raise _invalid(f"illegal base64 data at input byte {at}")
    data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    try:
        return msgspec.json.decode(data, type=Continue)
    except (ValueError, msgspec.DecodeError) as error:
        raise _invalid(str(error)) from None


def _invalid(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {why}")
