from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate import errors
from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.client.listing import early_token
from kvestigate.http.message import Request, Response
from kvestigate.kube.views.meta import PartialObject
from tests.client.scripted import (
    OpenTransport,
    Script,
    answer,
    failure,
    patient,
    pod,
    query_of,
    status,
    stream,
)


class Collection:
    """Pods in pages, as the API server lists them; the token is the place to go on at."""

    def __init__(self, size: int, *, metadata_last: bool = False, ignores_limit: bool = False):
        self.objects = [pod(f"pod-{number}") for number in range(size)]
        self.requests: list[dict[str, str]] = []
        self._metadata_last = metadata_last
        self._ignores_limit = ignores_limit

    async def __call__(self, request: Request) -> Response:
        query = query_of(request)
        self.requests.append(query)
        return answer(self.page(query))

    def page(self, query: dict[str, str]) -> bytes:
        start = int(query.get("continue", "0"))
        limit = 0 if self._ignores_limit else int(query.get("limit", "0"))
        end = start + limit if limit else len(self.objects)
        metadata: dict[str, Any] = {"resourceVersion": "77"}
        if end < len(self.objects):
            metadata |= {"continue": str(end), "remainingItemCount": len(self.objects) - end}
        head = {"kind": "PodList", "apiVersion": "v1"}
        items = self.objects[start:end]
        if self._metadata_last:
            return json.dumps(head | {"items": items, "metadata": metadata}).encode()
        return json.dumps(head | {"metadata": metadata, "items": items}).encode()


def names(count: int) -> list[str]:
    return [f"pod-{number}" for number in range(count)]


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 47])
@pytest.mark.parametrize("habits", [{}, {"metadata_last": True}, {"ignores_limit": True}], ids=str)
async def test_all_objects_come_once_and_in_order(
    connected: OpenTransport, size: int, habits: dict[str, bool]
) -> None:
    api = patient(await connected(Collection(size, **habits)))
    found = [
        item.metadata.name
        async for page in api.pages(PODS, type=PartialObject, limit=10)
        for item in page.items
    ]
    assert found == names(size)


async def test_a_whole_list_has_the_version_of_its_moment(connected: OpenTransport) -> None:
    api = patient(await connected(Collection(25)))
    listed = await api.list(PODS, limit=10)
    assert [item["metadata"]["name"] for item in listed.items] == names(25)
    assert listed.metadata.resource_version == "77"
    assert listed.metadata.continue_ == ""


async def test_selectors_stay_and_the_version_goes_after_the_first_page(
    connected: OpenTransport,
) -> None:
    server = Collection(15)
    api = patient(await connected(server))
    selection = Selection("shop", labels="a=b", extra={"resourceVersion": "0"})
    await api.list(PODS, selection, limit=10)
    assert server.requests == [
        {"labelSelector": "a=b", "resourceVersion": "0", "limit": "10"},
        {"labelSelector": "a=b", "continue": "10", "limit": "10"},
    ]


async def test_the_next_page_is_asked_for_while_this_one_is_still_coming(
    connected: OpenTransport,
) -> None:
    pages = Collection(20)
    second_asked = asyncio.Event()

    async def halting(request: Request) -> Response:
        body = pages.page(query_of(request))
        if "continue" in request.query:
            second_asked.set()
            return answer(body)
        cut = body.index(b'"items"') + 20  # the rest waits until the next page was asked for

        async def slowly() -> AsyncIterator[bytes]:
            yield body[:cut]
            await second_asked.wait()
            yield body[cut:]

        return Response(200, [("content-type", "application/json")], slowly())

    api = patient(await connected(halting))
    async with asyncio.timeout(10):
        listed = await api.list(PODS, limit=10)
    assert len(listed.items) == 20


async def test_a_slow_reader_is_not_run_ahead_of(connected: OpenTransport) -> None:
    server = Collection(1000)
    api = patient(await connected(server))
    async with aclosing(api.pages(PODS, limit=10)) as pages:
        await anext(pages)
        await anext(pages)
        assert len(server.requests) <= 2 + 4
    # Leaving early leaves no request behind.
    asked = len(server.requests)
    assert await api.request("GET", "/")
    assert len(server.requests) == asked + 1


@pytest.mark.parametrize("enabled", [True, False])
async def test_the_collector_is_left_as_it_was(connected: OpenTransport, enabled: bool) -> None:
    api = patient(await connected(Collection(25)))
    if not enabled:
        gc.disable()
    try:
        await api.list(PODS, limit=10)
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


EXPIRED = failure(410, "Expired", "too old") | {"metadata": {"continue": "10"}}


class Forgetful(Collection):
    """Forgets the moment of a list once it was asked to go on at 10."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.forgotten = False

    async def __call__(self, request: Request) -> Response:
        if query_of(request).get("continue") == "10" and not self.forgotten:
            self.forgotten = True
            return answer(EXPIRED, 410)
        return await super().__call__(request)


async def test_pages_go_on_from_a_newer_state_when_theirs_has_expired(
    connected: OpenTransport,
) -> None:
    api = patient(await connected(Forgetful(25)))
    found = [
        item["metadata"]["name"] async for page in api.pages(PODS, limit=10) for item in page.items
    ]
    assert found == names(25)


async def test_a_whole_list_that_expires_is_asked_for_at_once(connected: OpenTransport) -> None:
    server = Forgetful(25)
    api = patient(await connected(server))
    listed = await api.list(PODS, limit=10)
    assert [item["metadata"]["name"] for item in listed.items] == names(25)
    assert server.requests[-1] == {}


async def test_a_list_that_expires_at_once_is_the_callers(connected: OpenTransport) -> None:
    api = patient(await connected(Script(status(410, "Expired", "too old"))))
    with pytest.raises(errors.Expired):
        await api.list(PODS, Selection(extra={"resourceVersion": "1"}))


async def test_a_page_that_breaks_is_asked_for_again(connected: OpenTransport) -> None:
    pages = Collection(20)
    broken = False

    async def server(request: Request) -> Response:
        nonlocal broken
        body = pages.page(query_of(request))
        if "continue" in request.query and not broken:
            broken = True
            return stream(body[:80], then=_break)
        return answer(body)

    api = patient(await connected(server))
    assert len((await api.list(PODS, limit=10)).items) == 20
    assert broken


async def _break() -> None:
    raise errors.ConnectionFailed("the connection broke")


async def test_a_refusal_in_the_middle_reaches_the_reader(connected: OpenTransport) -> None:
    first = answer(Collection(20).page({"limit": "10"}))
    api = patient(await connected(Script(first, status(403, "Forbidden", "no more"))))
    with pytest.raises(errors.Forbidden, match="no more"):
        await api.list(PODS, limit=10)


async def test_a_body_that_falls_silent_is_a_deadline(connected: OpenTransport) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    transport = await connected(Script(stream(b'{"metadata":{},"items":[', then=wait)))
    api = Api(transport, timeout=0.02)
    with pytest.raises(errors.DeadlineExceeded, match="/api/v1/pods"):
        await api.list(PODS)


TOKEN = json.dumps({"metadata": {"continue": "next"}, "items": [pod("a")]}).encode()


@pytest.mark.parametrize(
    ("start", "token"),
    [
        (b'{"kind":"PodList","metadata":{"continue":"abc"},"items":[{"a', "abc"),
        (b'{"metadata":{"resourceVersion":"1"},"items":[', ""),
        (b'{\n  "metadata": {\n "continue": "abc" },\n  "items": [', "abc"),
        (b'{"metadata":{"continue":"ab', None),
        (b'{"kind":"PodList","items":[{"metadata":{"continue":"no"}}', None),
        (b'{"items":[],"metadata":{"continue":"abc"}}', None),
        (b"", None),
    ],
)
def test_the_token_is_found_before_the_items(start: bytes, token: str | None) -> None:
    assert early_token(start) == token


@given(cut=st.integers(min_value=0, max_value=len(TOKEN)))
def test_wherever_a_page_is_cut_its_token_is_right_or_unknown(cut: int) -> None:
    assert early_token(TOKEN[:cut]) in (None, "next")
