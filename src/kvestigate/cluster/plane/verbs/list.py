"""list: the selected objects at one revision, in pages that stay stable while others write."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from kvestigate.cluster.plane.request import versions
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.selection import Selection, selection
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.cluster.plane.verbs import converting
from kvestigate.errors import ApiError, BadRequest, Expired, to_status
from kvestigate.http.message import Response

STALE = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
_UNFILTERED, _BY_INDEX, _BY_CONTENT = 1000, 128, 16
"""Objects to take without a pause: all of them, filtered by indexed fields, or filtered by
fields that have to be decoded. Each number takes a quarter of a millisecond."""
_REQUIREMENTS_PER_PORTION = 4
"""Label requirements that fit in the same time; with more, fewer objects are taken."""
_BASE64 = re.compile(r"[\w-]*", re.ASCII)
PRESENT = -1
"""As the revision of a continue token: the state at the time of its use."""
LIFETIME = 300.0
"""Seconds for which a continue token leads to the state that it was given for, as long as
kube-apiserver keeps it. The history may reach further back, but to undo it takes long then."""


class Continue(msgspec.Struct):
    """A continue token: where the next page starts. Opaque to clients."""

    rv: int
    namespace: str
    name: str
    at: float = 0.0
    """When it was given, on the plane's clock."""
    v: str = "meta.k8s.io/v1"


class Stale(Exception):
    """A continue token is too old, or the history no longer has its revision."""

    def __init__(self, point: Continue) -> None:
        super().__init__()
        self._point = point

    def answer(self, call: Call) -> Response:
        """Status 410, with a token that continues the list at the present revision."""
        token = _token(Continue(PRESENT, self._point.namespace, self._point.name))
        status = {**to_status(Expired(STALE)), "metadata": {"continue": token}}
        response = answer.json_value(status, Expired.code, call.warnings)
        return answer.as_yaml(response) if call.form.yaml else response


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The selectors and the page size of a list."""

    selected: Selection
    limit: int
    """Zero: no limit."""


class Page(NamedTuple):
    items: list[Item]
    metadata: dict[str, Any]
    """The metadata of the list: its revision, and where the next page starts."""


async def list_(call: Call) -> Response:
    query = list_options(call)
    try:
        result = await page(call, query)
    except Stale as stale:
        return stale.answer(call)
    await call.breathe()
    return await answer.many(call, result.items, result.metadata)


def list_options(call: Call) -> ListOptions:
    """The query's selectors and limit; BadRequest or Invalid if they are malformed."""
    info = call.info
    limit = max(info.integer("limit") or 0, 0)
    info.integer("timeoutSeconds")  # not used, but a malformed one is refused
    versions.check_list(info)
    if info.params.get("resourceVersion") == "0" and not info.params.get("continue"):
        limit = 0  # as kube-apiserver's watch cache, which ignores the limit for "any version"
    return ListOptions(selection(info, call.served), limit)


async def page(call: Call, query: ListOptions) -> Page:
    """One page at one revision; Stale if the history no longer has that revision."""
    selected, limit = query.selected, query.limit
    state, after = await _start(call, limited=limit > 0)
    collection = state.collection(selected.kind.key)
    candidates = collection.items(selected.namespace or None, after)
    items, more = await _take(call, candidates, selected, limit)
    metadata: dict[str, Any] = {"resourceVersion": str(state.revision)}
    if more and items:
        last = items[-1]
        point = Continue(state.revision, last.namespace, last.name, call.clock.now())
        metadata["continue"] = _token(point)
        if selected.everything:
            metadata["remainingItemCount"] = collection.count_after(
                selected.namespace or None, (last.namespace, last.name)
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
        if call.clock.now() - point.at > LIFETIME:
            raise Stale(point)
        try:
            return await versions.recalled(call.plane, point.rv, call.breathe), after
        except Expired:
            raise Stale(point) from None
    if version:
        _check_version(version)
    exact = match == "Exact" or (version not in ("", "0") and not match and limited)
    if exact:
        revision = versions.parse(version)
        return await versions.recalled(call.plane, revision, call.breathe), None
    versions.at_least(call.plane, version)
    return call.plane.state, None


def _check_version(version: str) -> None:
    try:
        versions.parse(version, versions.FIELD)
    except ApiError as error:
        raise BadRequest(f"invalid resource version: {error.message}") from None


async def _take(
    call: Call, candidates: Iterator[Item], selected: Selection, limit: int
) -> tuple[list[Item], bool]:
    """The selected objects, up to the limit, and whether there are more."""
    items: list[Item] = []
    size = _portion(selected)
    if limit and selected.everything:
        size = min(size, limit + 1)
    while portion := list(islice(candidates, size)):
        shown = await converting.all_shown(call, portion)
        items += shown if selected.everything else filter(selected.has, shown)
        if limit and len(items) > limit:
            return items[:limit], True
        if len(portion) < size:
            break
        await call.pause()
    return items, False


def _portion(selected: Selection) -> int:
    """How many objects to look at without a pause."""
    if selected.everything:
        return _UNFILTERED
    indexed = selected.fields.selects_everything or selected.kind.indexes_fields
    size = _BY_INDEX if indexed else _BY_CONTENT
    requirements = len(selected.labels.requirements)
    return max(1, size // (1 + requirements // _REQUIREMENTS_PER_PORTION))


def _token(point: Continue) -> str:
    return urlsafe_b64encode(msgspec.json.encode(point)).decode().rstrip("=")


def _point(token: str) -> Continue:
    valid = _BASE64.match(token)
    if valid is None or valid.end() < len(token) or len(token) % 4 == 1:
        at = min(valid.end() if valid else 0, len(token) - 1)
        raise _invalid(f"illegal base64 data at input byte {at}")
    data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    try:
        return msgspec.json.decode(data, type=Continue)
    except (ValueError, msgspec.DecodeError) as error:
        raise _invalid(str(error)) from None


def _invalid(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {why}")
