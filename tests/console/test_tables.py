"""A table finds what a plain search over all rows would find, however it came to its rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kvestigate.client.cache import ChangeType
from kvestigate.console.tables import LiveTable, Query, Row, find, namespaces
from kvestigate.console.ticks import until
from kvestigate.kube import builtins
from kvestigate.kube.views.meta import Metadata
from tests.bed import plane

NAMESPACES = ("a", "b", "team-x")
WORDS = ("run", "fail", "x", "zz")

changes = st.lists(
    st.tuples(
        st.sampled_from(["ADDED", "MODIFIED", "DELETED"]),
        st.sampled_from(NAMESPACES),
        st.integers(0, 9),
        st.sampled_from(["running", "failed", "x-ray"]),
    ),
    max_size=60,
)
queries = st.builds(
    Query,
    words=st.lists(
        st.tuples(st.sampled_from(["", "-"]), st.sampled_from(WORDS)).map("".join), max_size=3
    ).map(tuple),
    namespace=st.sampled_from(["", "nowhere", *NAMESPACES]),
    descending=st.booleans(),
    page=st.integers(-1, 4),
    size=st.integers(1, 7),
)


def row(namespace: str, name: str, words: str, version: int) -> Row:
    metadata = Metadata(
        name=name, namespace=namespace, uid=f"{namespace}/{name}", resource_version=str(version)
    )
    return Row(metadata=metadata, cells=(name, words), text=f"{namespace} {name} {words}")


@given(changes, queries)
def test_what_is_found_is_what_a_plain_search_finds(
    made: list[tuple[ChangeType, str, int, str]], query: Query
) -> None:
    api: Any = None
    table = LiveTable(api, builtins.resource("pods"))
    known: dict[tuple[str, str], Row] = {}
    for version, (kind, namespace, number, words) in enumerate(made, 1):
        changed = row(namespace, f"pod-{number}", words, version)
        table.apply(kind, changed)
        known.pop((namespace, f"pod-{number}"), None)
        if kind != "DELETED":
            known[namespace, f"pod-{number}"] = changed
    expected = [
        each
        for key, each in sorted(known.items())
        if query.namespace in ("", key[0])
        and all((word.strip("-") in each.text) is not word.startswith("-") for word in query.words)
    ]
    if query.descending:
        expected.reverse()
    found = find(table, query)
    start = (found.page - 1) * query.size
    assert (found.total, found.matching) == (len(known), len(expected))
    assert list(found.rows) == expected[start : start + query.size]
    assert namespaces(table) == sorted({namespace for namespace, _ in known})


async def test_one_table_follows_its_kind() -> None:
    async with plane() as api:
        table = LiveTable(api, builtins.resource("configmaps"))
        following = asyncio.ensure_future(table.run())
        await table.synced.wait()
        before = len(table)
        seen = table.ticker.count
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
        await api.create(builtins.resource("configmaps"), body, namespace="default")
        await table.ticker.after(seen)
        assert len(table) == before + 1
        assert find(table, Query(words=("new",))).matching == 1
        following.cancel()
        await asyncio.wait({following})


async def test_a_stream_ends_with_the_console_and_with_its_events() -> None:
    async def events(count: int, *, then_wait: bool) -> AsyncGenerator[bytes, None]:
        for number in range(count):
            yield str(number).encode()
        if then_wait:
            await asyncio.Event().wait()

    closing = asyncio.Event()
    async with aclosing(until(closing, events(2, then_wait=False))) as stream:
        assert [event async for event in stream] == [b"0", b"1"]
    async with aclosing(until(closing, events(1, then_wait=True))) as stream:
        assert await anext(stream) == b"0"
        asyncio.get_running_loop().call_soon(closing.set)
        assert [event async for event in stream] == []
