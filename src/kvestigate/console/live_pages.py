"""The pages that keep themselves current: the overview, and the tables of any kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime

from kvestigate.console import explore, overview
from kvestigate.console.desk import Asked, Desk, refusal
from kvestigate.console.frame import notice, page
from kvestigate.console.markup import Child, Html, element
from kvestigate.console.tables import LiveTable, Query, find, namespaces
from kvestigate.console.ticks import refreshes
from kvestigate.health.rendering import aimed

_PATIENCE = 2.0
"""Seconds that a page waits for the cluster before it says that it is reading."""
_LONGEST_FILTER = 200


class LivePages:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def overview(self, asked: Asked) -> Html:
        visit = asked.visit
        live = (await self._desk.cluster(asked)).audit
        audit = await live.latest(_PATIENCE)
        here = visit.links.to("")
        problem = live.failure
        body: list[Child] = []
        if problem is not None:
            body.append(refusal(problem, "The cluster cannot be read: "))
        if audit is not None:
            audit = aimed(audit, ("--context", visit.context) if visit.context else ())
            body.append(overview.overview(visit, audit, live.is_new, live.history))
        elif problem is None:
            body.append(overview.reading(live.objects_read))
        part = element(
            "div", *body, id="overview", hx_get=here, hx_trigger="live", hx_select="#overview",
            hx_swap="outerHTML",
        )  # fmt: skip
        return page(
            visit, "", "Overview", part, command=self._desk.command(visit, "audit"),
            live=visit.links.to("events", "overview"), again=audit is None,
        )  # fmt: skip

    async def overview_events(self, asked: Asked) -> AsyncGenerator[bytes, None]:
        live = (await self._desk.cluster(asked)).audit

        async def events() -> AsyncGenerator[bytes, None]:
            async with live.viewing(), aclosing(refreshes(live.ticker, self._desk.clock)) as stream:
                async for event in stream:
                    yield event

        return events()

    async def kinds(self, asked: Asked) -> Html:
        registry = await (await self._desk.cluster(asked)).discovery.registry()
        preferred = {
            (resource.group, resource.plural): resource
            for resource in reversed(list(registry))
            if "list" in resource.verbs
        }
        listed = sorted(preferred.values(), key=lambda each: (each.group, each.plural))
        visit = asked.visit
        return page(
            visit, "explore", "Explore", explore.shortcuts(visit), explore.kinds(visit, listed),
            command=visit.links.command("kubectl", "api-resources"),
        )  # fmt: skip

    async def table(self, asked: Asked, kind: str) -> Html:
        visit = asked.visit
        cluster = await self._desk.cluster(asked)
        resource = await cluster.discovery.resolve(kind)
        table = cluster.table(resource)
        synced = await self._synced(table)
        words = asked.one("q")[:_LONGEST_FILTER]
        query = _query(asked, words)
        kept = {"q": words, "ns": query.namespace, "sort": query.sort,
                "desc": "1" if query.descending else ""}  # fmt: skip
        now = datetime.fromtimestamp(self._desk.clock.now(), UTC)
        rows = explore.rows(visit, table, query, find(table, query), kept, now)
        if not synced:
            rows = element("div", notice(f"Reading {resource.plural}."), id="rows")
        everywhere = ["-A"] if resource.namespaced and not query.namespace else []
        command = visit.links.command(
            "kubectl", "get", resource.qualified, *everywhere, namespace=query.namespace
        )
        return page(
            visit, "explore", resource.kind, explore.shortcuts(visit, resource.qualified),
            explore.filter_form(visit, resource, query, namespaces(table), words), rows,
            command=command,
            live=visit.links.to("events", "explore", resource.qualified), again=not synced,
        )  # fmt: skip

    async def table_events(self, asked: Asked, kind: str) -> AsyncGenerator[bytes, None]:
        cluster = await self._desk.cluster(asked)
        table = cluster.table(await cluster.discovery.resolve(kind))
        return refreshes(table.ticker, self._desk.clock)

    async def _synced(self, table: LiveTable) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE):
                await table.synced.wait()
        except TimeoutError:
            return False
        return True


def _query(asked: Asked, words: str) -> Query:
    number = asked.one("page")
    return Query(
        words=tuple(words.lower().split()),
        namespace=asked.one("ns"),
        sort=asked.one("sort"),
        descending=bool(asked.one("desc")),
        page=int(number) if number.isdecimal() and len(number) < 9 else 1,
    )
