"""Any kind as a table that keeps itself current: one list and one watch, however many look at it.

The server makes the rows (`as=Table`), so the columns are those of `kubectl get`, also of custom
resources. Of each row only what is shown, found and sorted by is kept: 100,000 pods are about
150 MB. Keys stay in order as rows come and go, so a page of a filtered list is one pass over texts.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.aio.backoff import Backoff
from kvestigate.aio.supervisor import Ready
from kvestigate.client.api import Api
from kvestigate.client.cache import Change, Key
from kvestigate.client.call import Call
from kvestigate.client.informer import Informer
from kvestigate.client.watching import Watch
from kvestigate.console.ticks import Ticker
from kvestigate.kube.decode import ListMeta, decode
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import Metadata, View

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PAGE = 1000
"""Rows that are asked for at once."""
_NO_LABELS: dict[str, str] = {}


class Column(View, frozen=True):
    name: str = ""
    type: str = ""
    description: str = ""
    priority: int = 0
    """Above 0: only in wide tables."""


class _Object(View, frozen=True):
    metadata: Metadata = msgspec.field(default_factory=Metadata)


class _Row(View, frozen=True):
    cells: tuple[Any, ...] = ()
    object: _Object = msgspec.field(default_factory=_Object)


class _Table(View, frozen=True):
    metadata: ListMeta = ListMeta()
    column_definitions: tuple[Column, ...] = ()
    rows: tuple[_Row, ...] = ()


class Row(View, frozen=True):
    """One object."""

    metadata: Metadata
    cells: tuple[str, ...]
    text: str
    """Everything that can be looked for, in lower case: name, cells, labels."""


class LiveTable(Informer[Row]):
    """The rows of one resource. Never fails: what went wrong last is `failure`."""

    def __init__(self, api: Api, resource: Resource) -> None:
        super().__init__()
        self.resource = resource
        self.columns: tuple[Column, ...] = ()
        self.failure: errors.KvestigateError | None = None
        self.ticker = Ticker()
        self.order: list[Key] = []
        """The keys of all rows, sorted."""
        self.texts: list[str] = []
        """What can be looked for in each of them."""
        self._api = api
        self.subscribe(self._keep_order)

    async def run(self, ready: Ready[None] | None = None) -> None:
        backoff = Backoff(initial=0.8, cap=30.0, jitter=1.0)
        while True:
            try:
                version = await self._relist()
                self.failure = None
                self.synced.set()
                self.ticker.tick()
                await self._watch(version, backoff)
            except errors.KvestigateError as error:
                self.failure = error
                self.synced.set()
                self.ticker.tick()
            await self._api.exchange.policy.clock.sleep(backoff.next())

    async def _relist(self) -> str:
        rows: list[Row] = []
        token = ""
        while True:
            table = await self._page(token)
            self.columns = table.column_definitions or self.columns
            rows += map(_kept, table.rows)
            token = table.metadata.continue_
            if not token:
                self.replace(rows, table.metadata.resource_version)
                return table.metadata.resource_version

    async def _page(self, token: str) -> _Table:
        query = (("limit", str(_PAGE)), *((("continue", token),) if token else ()))
        call = Call("list", self.resource, query=query, accept=_TABLE)
        body = await self._api.exchange.body(call, call.request())
        return decode(body, _Table, where=str(call))

    async def _watch(self, version: str, backoff: Backoff) -> None:
        call = Call("watch", self.resource, accept=_TABLE)
        exchange = self._api.exchange
        async with Watch(exchange, call, _Table, resource_version=version) as watch:
            async for event in watch:
                backoff.reset()
                for row in event.object.rows:
                    self.apply(event.type, _kept(row))

    def _keep_order(self, change: Change[Row]) -> None:
        key, row = change.key, change.new
        place = len(self.order)
        if self.order and self.order[-1] >= key:
            place = bisect_left(self.order, key)
        known = place < len(self.order) and self.order[place] == key
        if row is None:
            if known:
                del self.order[place], self.texts[place]
        elif known:
            self.texts[place] = row.text
        else:
            self.order.insert(place, key)
            self.texts.insert(place, row.text)
        self.ticker.tick()


def _kept(row: _Row) -> Row:
    """What is kept of a row; words that many rows share are kept once."""
    metadata = row.object.metadata
    cells = tuple(sys.intern("" if cell is None else str(cell)) for cell in row.cells)
    labels = (f"{key}={value}" for key, value in metadata.labels.items())
    return Row(
        metadata=Metadata(
            name=metadata.name,
            namespace=sys.intern(metadata.namespace),
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            creation_timestamp=metadata.creation_timestamp,
            deletion_timestamp=metadata.deletion_timestamp,
            labels=_NO_LABELS,
            annotations=_NO_LABELS,
        ),
        cells=cells,
        text=" ".join((metadata.namespace, *cells, *labels)).lower(),
    )


@dataclass(frozen=True, slots=True)
class Query:
    """What of a table somebody wants to see."""

    words: tuple[str, ...] = ()
    """All of them are in the row; one that begins with `-` is not."""
    namespace: str = ""
    sort: str = ""
    """The name of a column; empty: by namespace and name."""
    descending: bool = False
    page: int = 1
    size: int = 50


@dataclass(frozen=True, slots=True)
class Found:
    """One page of what a query found."""

    rows: tuple[Row, ...]
    total: int
    """Rows of the table."""
    matching: int
    page: int
    pages: int
    first: int
    """The number of the first row that is shown, counted from 1."""


def find(table: LiveTable, query: Query) -> Found:
    """The page of the rows that match."""
    matching = _matching(table, query)
    if query.sort:
        matching = _sorted(table, matching, query)
    elif query.descending:
        matching = matching[::-1]
    pages = max(-(-len(matching) // query.size), 1)
    page = min(max(query.page, 1), pages)
    start = (page - 1) * query.size
    shown = (table.get(key) for key in matching[start : start + query.size])
    rows = tuple(row for row in shown if row is not None)
    return Found(rows, len(table), len(matching), page, pages, start + 1)


def namespaces(table: LiveTable) -> Sequence[str]:
    """Those that the rows are in, by name."""
    names: list[str] = []
    place = 0
    while place < len(table.order):
        names.append(table.order[place].namespace)
        place = bisect_right(table.order, names[-1], lo=place, key=lambda key: key.namespace)
    return [name for name in names if name]


def _matching(table: LiveTable, query: Query) -> list[Key]:
    """The keys of the rows that match, in order."""
    order, texts = table.order, table.texts
    if query.namespace:  # rows of one namespace stand together
        start = bisect_left(order, Key(query.namespace, ""))
        end = bisect_right(order, query.namespace, key=lambda key: key.namespace)
        order, texts = order[start:end], texts[start:end]
    if not query.words:
        return order
    found: Iterable[int] = range(len(order))
    for word in query.words:
        if not word.startswith("-"):
            found = [place for place in found if word in texts[place]]
        elif word[1:]:
            found = [place for place in found if word[1:] not in texts[place]]
    return [order[place] for place in found]


def _sorted(table: LiveTable, keys: list[Key], query: Query) -> list[Key]:
    names = [column.name for column in table.columns]
    if query.sort == "Age":

        def by_age(key: Key) -> tuple[bool, datetime | int]:
            row = table.get(key)
            born = row.metadata.creation_timestamp if row is not None else None
            return (born is None, born or 0)

        return sorted(keys, key=by_age, reverse=not query.descending)
    if query.sort not in names:
        return keys
    place = names.index(query.sort)

    def by_cell(key: Key) -> tuple[float, str]:
        row = table.get(key)
        cell = row.cells[place] if row is not None and place < len(row.cells) else ""
        head = cell.split(" ", 1)[0]
        return (float(head) if head.isdecimal() else -1.0, cell)

    return sorted(keys, key=by_cell, reverse=query.descending)
