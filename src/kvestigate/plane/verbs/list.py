"""list: many objects at one revision, in pages that stay stable while others write."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

import msgspec

from kvestigate.errors import ApiError, BadRequest, Expired, to_status
from kvestigate.plane import answer, forms, options, versions
from kvestigate.plane.body import json_complaint
from kvestigate.plane.call import Call
from kvestigate.plane.selection import Selection, selection
from kvestigate.plane.store.model import Item
from kvestigate.plane.store.state import PlaneState
from kvestigate.wire.message import Response

STALE = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
PRESENT = -1
"""As the revision of a continue token: whatever is there when it is used."""


class Continue(msgspec.Struct):
    """Where the next page starts; opaque to clients."""

    rv: int
    namespace: str
    name: str
    v: str = "meta.k8s.io/v1"


class _Stale(Exception):
    """The history no longer reaches back to where a token's list began."""

    def __init__(self, point: Continue) -> None:
        super().__init__()
        self.point = point


def _offer(point: Continue) -> Response:
    """The refusal of a stale token, with one that goes on regardless."""
    token = _token(Continue(PRESENT, point.namespace, point.name))
    status = {**to_status(Expired(STALE)), "metadata": {"continue": token}}
    return answer.json_value(status, Expired.code)


async def list_(call: Call) -> Response:
    asked = call.asked
    options.check_list(asked)
    chosen = selection(asked, call.served)
    limit = asked.integer("limit") or 0
    try:
        state, after = _start(call)
    except _Stale as stale:
        return _offer(stale.point)
    items, more = _page(_matching(state, chosen, after), limit)
    metadata: dict[str, Any] = {"resourceVersion": str(state.revision)}
    if more and items:
        last = items[-1]
        metadata["continue"] = _token(Continue(state.revision, last.namespace, last.name))
        if chosen.everything:
            collection = state.collection(chosen.kind.key)
            metadata["remainingItemCount"] = collection.count_after(
                chosen.namespace or None, (last.namespace, last.name)
            )
    return await forms.many(call, items, metadata)


def _start(call: Call) -> tuple[PlaneState, tuple[str, str] | None]:
    """The state to list and the key to start after."""
    params = call.asked.params
    version, match = params.get("resourceVersion", ""), params.get("resourceVersionMatch", "")
    if token := params.get("continue", ""):
        if version and version != "0":
            raise BadRequest("specifying resource version is not allowed when using continue")
        point = _point(token)
        after = (point.namespace, point.name)
        if point.rv == PRESENT:
            return call.plane.state, after
        try:
            return versions.exactly(call.plane, point.rv), after
        except Expired:
            raise _Stale(point) from None
    if version:
        _check_version(version)
    exact = match == "Exact" or (version not in ("", "0") and not match and "limit" in params)
    if exact:
        return versions.exactly(call.plane, versions.parse(version)), None
    versions.at_least(call.plane, version)
    return call.plane.state, None


def _check_version(version: str) -> None:
    try:
        versions.parse(version, versions.FIELD)
    except ApiError as error:
        raise BadRequest(f"invalid resource version: {error.message}") from None


def _matching(
    state: PlaneState, chosen: Selection, after: tuple[str, str] | None
) -> Iterator[Item]:
    collection = state.collection(chosen.kind.key)
    items = collection.items(chosen.namespace or None, after)
    return items if chosen.everything else (item for item in items if chosen.has(item))


def _page(items: Iterator[Item], limit: int) -> tuple[list[Item], bool]:
    if not limit:
        return list(items), False
    page: list[Item] = []
    for item in items:
        if len(page) == limit:
            return page, True
        page.append(item)
    return page, False


def _token(point: Continue) -> str:
    return urlsafe_b64encode(msgspec.json.encode(point)).decode().rstrip("=")


def _point(token: str) -> Continue:
    data = b""
    try:
        data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        return msgspec.json.decode(data, type=Continue)
    except (ValueError, msgspec.DecodeError) as error:
        why = json_complaint(data, error)
        raise BadRequest(f"invalid continue token: continue key is not valid: {why}") from None
