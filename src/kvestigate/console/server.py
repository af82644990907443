"""The console as an ASGI application: which address leads to which page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar
from urllib.parse import parse_qs

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse

from kvestigate.aio.clock import Clock, WallClock
from kvestigate.console import assets
from kvestigate.console.contexts import Contexts
from kvestigate.console.desk import Asked, Desk, failed
from kvestigate.console.gate import App, Gate
from kvestigate.console.live_pages import LivePages
from kvestigate.console.markup import Html
from kvestigate.console.object_pages import ObjectPages
from kvestigate.console.operation_pages import SECTIONS, OperationPages
from kvestigate.console.sessions import Sessions
from kvestigate.console.ticks import until
from kvestigate.errors import ApiError, KvestigateError, NotFound, UsageError

_MOST_STREAMS = 100
"""Streams of events that are open at a time, of all viewers."""

T = TypeVar("T")
Page = Callable[[Asked], Awaitable[Html]]
Events = Callable[[Asked], Awaitable[AsyncGenerator[bytes, None]]]


def application(
    contexts: Contexts,
    sessions: Sessions,
    *,
    allow_writes: bool = False,
    closing: asyncio.Event | None = None,
    clock: Clock | None = None,
) -> App:
    """The console behind its gate. Streams of events end when `closing` is set."""
    desk = Desk(contexts, allow_writes, clock or WallClock())
    return Gate(_Routes(desk, closing or asyncio.Event()).app, sessions)


class _Routes:
    def __init__(self, desk: Desk, closing: asyncio.Event) -> None:
        self._desk = desk
        self._closing = closing
        self._streams = asyncio.Semaphore(_MOST_STREAMS)
        self.app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        live, objects, operations = LivePages(desk), ObjectPages(desk), OperationPages(desk)

        self._page("/", lambda request: live.overview)
        self._events("/events/overview", lambda request: live.overview_events)
        self._page("/explore", lambda request: live.kinds)
        self._page("/explore/{kind}", lambda request: _bound(live.table, request, "kind"))
        self._events(
            "/events/explore/{kind}", lambda request: _bound(live.table_events, request, "kind")
        )
        place = "/object/{kind}/{namespace}/{name}"
        which = ("kind", "namespace", "name")
        self._events(f"{place}/follow", lambda request: _bound(objects.follow, request, *which))
        self._page(
            f"{place}/{{part}}", lambda request: _bound(objects.object, request, *which, "part")
        )
        self._page(place, lambda request: _bound(objects.object, request, *which))
        self._page("/plan", lambda request: operations.plan)
        for name in SECTIONS:
            self._page(f"/{name}", lambda request: _section(operations, request.url.path[1:]))
        self._page("/operations", lambda request: operations.operations)
        self._page("/run/{operation}", lambda request: _bound(operations.run, request, "operation"))
        for method in ("GET", "POST"):
            self._page(
                "/act/{operation}",
                lambda request: _acting(operations, request),
                method=method,
            )
        self.app.add_api_route("/static/{name}", _static, methods=["GET"])
        self.app.add_api_route("/{path:path}", self._nothing, methods=["GET", "POST"])

    def _page(self, path: str, chosen: Callable[[Request], Page], *, method: str = "GET") -> None:
        async def answer(request: Request) -> Response:
            asked = self._asked(request)
            try:
                return HTMLResponse(str(await chosen(request)(asked)))
            except KvestigateError as error:
                return HTMLResponse(str(failed(asked, error)), status_code=_status(error))

        self.app.add_api_route(path, answer, methods=[method], response_class=HTMLResponse)

    def _events(self, path: str, chosen: Callable[[Request], Events]) -> None:
        async def answer(request: Request) -> Response:
            if self._streams.locked():
                return PlainTextResponse("too many streams are open", status_code=503)
            try:
                events = await chosen(request)(self._asked(request))
            except KvestigateError as error:
                return PlainTextResponse(error.message, status_code=_status(error))
            return StreamingResponse(self._counted(events), media_type="text/event-stream")

        self.app.add_api_route(path, answer, methods=["GET"])

    async def _counted(self, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        async with self._streams, aclosing(until(self._closing, events)) as stream:
            async for event in stream:
                yield event

    def _asked(self, request: Request) -> Asked:
        """The parameters of the address, or of the form; the gate has checked the form's token."""
        form = getattr(request.state, "form", None)
        values = form if form is not None else parse_qs(request.url.query, keep_blank_values=True)
        return self._desk.asked(values, request.state.form_token)

    async def _nothing(self, request: Request, path: str) -> Response:
        error = NotFound(f"there is no page /{path[:200]}", hint="Use the navigation above.")
        return HTMLResponse(str(failed(self._asked(request), error)), status_code=404)


def _bound(
    page: Callable[..., Awaitable[T]], request: Request, *names: str
) -> Callable[[Asked], Awaitable[T]]:
    """The page for these parts of the address."""
    return lambda asked: page(asked, *(request.path_params[name] for name in names))


def _section(pages: OperationPages, name: str) -> Page:
    return lambda asked: pages.section(asked, name)


def _acting(pages: OperationPages, request: Request) -> Page:
    posted = request.method == "POST"
    return lambda asked: pages.act(asked, request.path_params["operation"], posted=posted)


async def _static(name: str) -> Response:
    content = assets.contents().get(name)
    if content is None:
        return PlainTextResponse("there is no such file", status_code=404)
    return Response(content.body, media_type=content.type)


def _status(error: KvestigateError) -> int:
    if isinstance(error, ApiError):
        return error.http_code
    return 400 if isinstance(error, UsageError) else 502
