"""The MCP front: operations as tools for language models, JSON-RPC 2.0 over lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from kvestigate import __version__
from kvestigate.aio.supervisor import Supervisor
from kvestigate.cybernet.bodies import NOTHING, Body
from kvestigate.cybernet.gateway import Caller, Gateway, Outcome
from kvestigate.cybernet.parameters import result_schema
from kvestigate.cybernet.refusals import Malformed, NotAllowed, Refused, TooLarge
from kvestigate.operation import Effect, Operation

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Of the protocol, newest first."""
_BATCHES = "2025-03-26"
"""The only version in which several requests may come in one line."""
_STRUCTURED = "2025-06-18"
"""The first version in which a result is more than text, and its schema is known."""

MOST_FETCHED = 8 * 1024 * 1024
"""Bytes of a file in an answer, which is one line and says everything twice."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602

Write = Callable[[bytes], None]


class Fault(Exception):
    """A message that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class McpSession:
    """One client, from `initialize` until it closes our input."""

    def __init__(self, gateway: Gateway, identity: str, write: Write) -> None:
        self._gateway = gateway
        self._caller = Caller(identity, "stdio")
        self._write = write
        self._tools = {tool_name(name): name for name in gateway.operations}
        self._version = ""
        self._answering: set[Any] = set()
        """Ids of requests."""
        self._unwanted: set[Any] = set()
        """Those among them of which the client wants no answer any more."""

    async def run(self, pieces: AsyncIterator[bytes]) -> None:
        """Answer the lines that the pieces make up, wherever they are cut."""
        async with Supervisor("mcp") as owner:
            answering: set[asyncio.Task[None]] = set()
            body = Body(self._gateway.room)
            try:
                async for piece in pieces:
                    *ends, rest = piece.split(b"\n")
                    for end in ends:
                        body.write(end)
                        task = owner.spawn("message", self._line(body))
                        answering.add(task)
                        task.add_done_callback(answering.discard)
                        body = Body(self._gateway.room)
                        # In order up to the first wait: what follows `initialize` finds it done.
                        await asyncio.sleep(0)
                    body.write(rest)
            finally:
                body.close()
            if answering:
                await asyncio.wait(set(answering))

    async def _line(self, body: Body) -> None:
        try:
            if (message := await body.value()) is not NOTHING:
                await self._message(message)
        except Malformed:
            self._send(_error(None, Fault(PARSE_ERROR, "the line is not JSON")))
        except Refused as refusal:
            self._send(_error(None, Fault(INVALID_REQUEST, refusal.message)))
        finally:
            body.close()

    async def _message(self, message: Any) -> None:
        if isinstance(message, list) and self._version == _BATCHES and message:
            answers = [await self._answer(each) for each in message]
            if found := [it for it in answers if it is not None]:
                self._send(found)
        elif (answer := await self._answer(message)) is not None:
            self._send(answer)

    def _send(self, message: Any) -> None:
        self._write(msgspec.json.encode(message) + b"\n")

    async def _answer(self, message: Any) -> dict[str, Any] | None:
        """None to what needs no answer: a notification, or an answer to nothing."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _error(None, Fault(INVALID_REQUEST, "the message is not one of JSON-RPC 2.0"))
        method, number = message.get("method"), message.get("id")
        params = message.get("params") or {}
        if not isinstance(method, str) or not isinstance(params, dict):
            if "result" in message or "error" in message:
                return None
            return _error(number, Fault(INVALID_REQUEST, "the message has no method"))
        if number is None:
            self._notified(method, params)
            return None
        if isinstance(number, bool) or not isinstance(number, int | str):
            return _error(None, Fault(INVALID_REQUEST, "the id is neither a number nor text"))
        self._answering.add(number)
        try:
            return await self._request(number, method, params)
        finally:
            self._answering.discard(number)

    async def _request(
        self, id: int | str, method: str, params: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        try:
            answer = {"jsonrpc": "2.0", "id": id, "result": await self._result(method, params)}
        except Fault as fault:
            answer = _error(id, fault)
        if id in self._unwanted:
            self._unwanted.discard(id)
            return None
        return answer

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        """An operation that has begun is carried out and recorded, wanted or not."""
        number = params.get("requestId")
        known = isinstance(number, int | str) and number in self._answering
        if method == "notifications/cancelled" and known:
            self._unwanted.add(number)

    async def _result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize":
                return self._initialize(params)
            case "ping":
                return {}
            case "tools/list":
                self._require_version()
                return {"tools": [self._described(*pair) for pair in self._tools.items()]}
            case "tools/call":
                self._require_version()
                return await self._call(params)
        raise Fault(METHOD_NOT_FOUND, f"there is no method {method[:100]!r}")

    def _require_version(self) -> None:
        if not self._version:
            raise Fault(INVALID_REQUEST, "initialize comes first")

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise Fault(INVALID_PARAMS, "protocolVersion is missing")
        self._version = wanted if wanted in VERSIONS else VERSIONS[0]
        metadata = self._gateway.space.metadata
        return {
            "protocolVersion": self._version,
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": f"kvestigate-{metadata.name}", "version": __version__},
            "instructions": metadata.description,
        }

    def _described(self, tool: str, name: str) -> dict[str, Any]:
        operation = self._gateway.operations[name]
        found = {
            "name": tool,
            "description": operation.summary,
            "inputSchema": self._gateway.schema(operation),
        }
        if self._version != VERSIONS[-1]:
            found["annotations"] = _annotations(operation)
        if self._version >= _STRUCTURED:
            found["outputSchema"] = result_schema(operation)
        return found

    async def _call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        tool = params.get("name")
        if not isinstance(tool, str):
            raise Fault(INVALID_PARAMS, "name is missing")
        arguments = params.get("arguments") or {}
        name = self._tools.get(tool)
        if name is None:
            unknown = NotAllowed(f"there is no tool {tool[:100]!r}", "operations.allow")
            refusal = await self._gateway.refuse(self._caller, tool, unknown)
            raise Fault(INVALID_PARAMS, refusal.message)
        outcome = await self._gateway.call(self._caller, name, arguments)
        try:
            body = _whole(outcome)
        except Refused as refusal:
            body = msgspec.json.encode(refusal.envelope())
            return {"content": [_text(body)], "isError": True}
        result: dict[str, Any] = {"content": [_text(body)], "isError": False}
        if self._version >= _STRUCTURED:
            result["structuredContent"] = msgspec.Raw(body)
        return result


def _whole(outcome: Outcome) -> bytes:
    """The result: there is no sending it in pieces here."""
    answer = outcome.result
    if answer is None:
        raise outcome.refusal or Refused("there is no result", "defect")
    try:
        if answer.file is not None and answer.file.size > MOST_FETCHED:
            raise TooLarge(
                f"a file of {answer.file.size} bytes is more than the {MOST_FETCHED} of an answer",
                "answer",
                hint="fetch its parts one by one, or over HTTP",
            )
        return answer.whole
    finally:
        answer.close()


def tool_name(operation: str) -> str:
    """Many clients take only letters, digits, `_` and `-` in the name of a tool."""
    return operation.replace(".", "_")


def _annotations(operation: Operation[Any, Any]) -> dict[str, bool]:
    return {
        "readOnlyHint": operation.effect is Effect.READ,
        "destructiveHint": operation.effect is Effect.DESTROY,
        "openWorldHint": False,
    }


def _text(body: bytes) -> dict[str, str]:
    return {"type": "text", "text": body.decode()}


def _error(id: Any, fault: Fault) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": id,
        "error": {"code": fault.code, "message": fault.message},
    }
