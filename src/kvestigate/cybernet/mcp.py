"""The MCP front: operations as tools for language models, by the official SDK.

The SDK speaks the protocol, of 2026-07-28 and of the handshake era before it. This module says
which tools there are, and carries out a call by `Gateway.call`, as the HTTP front does. Whoever
calls is known before the SDK sees a message: each message comes with its `Asked`.

Every HTTP request is served on its own: no sessions are kept, so there is none to take over, and a
gateway that was started anew answers the next request of every client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server import CacheHint, Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

from kvestigate import __version__
from kvestigate.cybernet.asgi import answered
from kvestigate.cybernet.bodies import NOTHING, Body
from kvestigate.cybernet.fitting import PARAMETER, wish_schema
from kvestigate.cybernet.gateway import Caller, Gateway, Outcome
from kvestigate.cybernet.parameters import part_schema
from kvestigate.cybernet.refusals import Malformed, NotAllowed, Refused
from kvestigate.cybernet.tools import description, hints, tool_name
from kvestigate.http.message import Request, Response
from kvestigate.operation import Operation

_ASKED = "kvestigate.asked"
_LISTS_STAY = CacheHint(ttl_ms=60_000, scope="private")
"""What is allowed changes when the gateway is started anew, and differs between identities."""

Write = Callable[[bytes], None]
_Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """Who sent a message, and the body that it came in."""

    caller: Caller
    body: Body
    """Has the file of the message, if there is one, for which a mark stands in the message."""


class McpFront:
    """Serves the tools of one gateway to any number of clients."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._tools = {tool_name(name): name for name in gateway.operations}
        metadata = gateway.space.metadata
        self._server: Server[Any] = Server(
            f"kvestigate-{metadata.name}",
            version=__version__,
            instructions=metadata.description,
            cache_hints={"tools/list": _LISTS_STAY, "server/discover": _LISTS_STAY},
            # No parameter of ours is repeated in a header, so there is nothing to compare.
            get_tool_input_schema=lambda _: None,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        self._server.middleware.append(_closing_files)

    async def answer(self, caller: Caller, request: Request, body: Body) -> Response:
        """Answer one POST."""
        text = body.text
        manager = StreamableHTTPSessionManager(
            self._server, stateless=True, max_request_body_size=len(text) + 1
        )
        extra = {_ASKED: Asked(caller, body)}
        return await answered(_running(manager), request, text, **extra)

    async def serve_lines(self, caller: Caller, pieces: AsyncIterator[bytes], write: Write) -> None:
        """Answer one client, a line a message, until what it says ends and is answered."""
        said, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        answer, answers = anyio.create_memory_object_stream[SessionMessage](0)
        open_requests = _OpenRequests()

        async def listen() -> None:
            async with said:
                async for body in _lines(pieces, self._gateway):
                    message = await _understood(body, caller)
                    if isinstance(message, SessionMessage):
                        open_requests.heard(message.message)
                        await said.send(message)
                    elif message is not None:
                        write(_line(message))
                await open_requests.none_left()

        async def speak() -> None:
            async with answers:
                async for each in answers:
                    write(_line(each.message))
                    open_requests.answered(each.message)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            tasks.start_soon(speak)
            await self._server.run(heard, answer, self._server.create_initialization_options())

    async def _list(self, context: _Context, _: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._descriptions)

    @cached_property
    def _descriptions(self) -> list[types.Tool]:
        """They stay the same, and take a tenth of a second to make."""
        return [self._described(*pair) for pair in self._tools.items()]

    def _described(self, tool: str, name: str) -> types.Tool:
        operation = self._gateway.operations[name]
        return types.Tool(
            name=tool,
            description=description(operation),
            input_schema=self._schema(operation),
            output_schema=part_schema(operation),
            annotations=types.ToolAnnotations.model_validate(hints(operation)),
        )

    def _schema(self, operation: Operation[Any, Any]) -> dict[str, Any]:
        found = self._gateway.schema(operation)
        answers = self._gateway.space.answers
        wish = wish_schema(answers.budget, answers.max_budget)
        return {**found, "properties": {**found.get("properties", {}), PARAMETER: wish}}

    async def _call(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        asked = _asked(context)
        name = self._tools.get(params.name)
        if name is None:
            unknown = NotAllowed(
                f"there is no tool {params.name[:100]!r}; there are: {', '.join(self._tools)}",
                "operations.allow",
            )
            refusal = await self._gateway.refuse(asked.caller, params.name, unknown)
            raise MCPError(types.INVALID_PARAMS, refusal.message)
        try:
            arguments = asked.body.filled(params.arguments or {})
            asked.body.release()
            budget = self._gateway.space.answers.budget
            whole = _whole(await self._gateway.call(asked.caller, name, arguments, budget))
        except Refused as refusal:
            text = msgspec.json.encode(refusal.envelope()).decode()
            return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
        return types.CallToolResult(
            content=[types.TextContent(text=whole.decode())],
            structured_content=msgspec.json.decode(whole),
        )


class _OpenRequests:
    """The requests of a client that are still to be answered."""

    def __init__(self) -> None:
        self._open: set[types.RequestId] = set()
        self._changed = anyio.Event()

    def heard(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._open.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.params:
            number = message.params.get("requestId")
            if message.method == "notifications/cancelled" and isinstance(number, int | str):
                self._close(number)

    def answered(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._close(message.id)

    async def none_left(self) -> None:
        while self._open:
            await self._changed.wait()

    def _close(self, number: types.RequestId | None) -> None:
        self._open -= {number}
        self._changed.set()
        self._changed = anyio.Event()


def _running(manager: StreamableHTTPSessionManager) -> Any:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    return application


def _asked(context: _Context) -> Asked:
    """Over HTTP the SDK hands on its own request, with the scope that it was given."""
    request: Any = context.request
    asked = request if isinstance(request, Asked) else request.scope[_ASKED]
    assert isinstance(asked, Asked)
    return asked


async def _closing_files(ctx: _Context, call_next: CallNext) -> HandlerResult:
    """A file that no operation has taken is of no use once its message is answered."""
    try:
        return await call_next(ctx)
    finally:
        _asked(ctx).body.close()


async def _lines(pieces: AsyncIterator[bytes], gateway: Gateway) -> AsyncIterator[Body]:
    """The lines that the pieces make up, wherever these are cut."""
    body = Body(gateway.room)
    try:
        async for piece in pieces:
            *ends, rest = piece.split(b"\n")
            for end in ends:
                body.write(end)
                yield body
                body = Body(gateway.room)
            body.write(rest)
    finally:
        body.close()


async def _understood(body: Body, caller: Caller) -> SessionMessage | types.JSONRPCError | None:
    """The message of a line, or the error that it is answered with; None for an empty line."""
    try:
        if await body.value() is NOTHING:
            return None
        message = types.jsonrpc_message_adapter.validate_json(body.text, by_name=False)
    except Malformed:
        return _error(types.PARSE_ERROR, "the line is not JSON")
    except (Refused, ValidationError) as error:
        body.close()
        said = error.message if isinstance(error, Refused) else "the line is no JSON-RPC message"
        return _error(types.INVALID_REQUEST, said)
    return SessionMessage(message, ServerMessageMetadata(request_context=Asked(caller, body)))


def _error(code: int, message: str) -> types.JSONRPCError:
    error = types.ErrorData(code=code, message=message)
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=error)


def _line(message: types.JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def _whole(outcome: Outcome) -> bytes:
    """The result: there is no sending it in pieces here."""
    answer = outcome.result
    if answer is None:
        raise outcome.refusal or Refused("there is no result", "defect")
    try:
        return answer.whole
    finally:
        answer.close()
