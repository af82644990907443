"""Exec and attach over a WebSocket: messages whose first byte names their channel.

The kubelet's side of `v5.channel.k8s.io` and `v4.channel.k8s.io`; only v5 can end stdin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from kvestigate import errors
from kvestigate.cluster.node.hosts.interface import Ending, LaunchFailed, Process, Session
from kvestigate.cluster.node.hosts.logs import STDERR
from kvestigate.http.message import WebSocket

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_SUCCESS: dict[str, Any] = {"metadata": {}, "status": "Success"}


class Input(Protocol):
    """Receives the stdin and the terminal size that the client sends."""

    async def write(self, data: bytes) -> None: ...

    def close_stdin(self) -> None: ...

    def resize(self, width: int, height: int) -> None: ...


async def run_session(socket: WebSocket, begin: Callable[[], Awaitable[Session]]) -> None:
    """Carry a command's streams until it ends or the client goes."""
    try:
        session = await begin()
    except LaunchFailed as failure:
        await _tell(socket, _failed(failure.message))
        return
    try:
        await _both(socket, session, _send_output(socket, session))
    finally:
        await session.aclose()


async def attach(socket: WebSocket, process: Process, *, stdin: bool, once: bool) -> None:
    """Join a container's own process until it ends or the client goes."""
    tap = process.log.tap()
    inlet = _Stdin(process, stdin=stdin, once=once)

    async def send() -> None:
        while (piece := await tap.read()) is not None:
            await socket.send(_message(*piece))
        await process.ended
        await _tell(socket, _SUCCESS)

    try:
        await _both(socket, inlet, send())
    finally:
        inlet.close_stdin()
        tap.close()


class _Stdin:
    """A container's stdin, for the length of one attach."""

    def __init__(self, process: Process, *, stdin: bool, once: bool) -> None:
        self._process = process
        self._stdin = stdin
        self._once = once

    async def write(self, data: bytes) -> None:
        if self._stdin:
            self._process.write_stdin(data)

    def close_stdin(self) -> None:
        if self._stdin and self._once:
            self._process.close_stdin()

    def resize(self, width: int, height: int) -> None:
        self._process.resize(width, height)


async def _both(socket: WebSocket, inlet: Input, sending: Any) -> None:
    output = asyncio.ensure_future(sending)
    intake = asyncio.ensure_future(_receive(socket, inlet))
    try:
        await asyncio.wait({output, intake}, return_when=asyncio.FIRST_COMPLETED)
        if output.done():
            output.result()
    except errors.ConnectionFailed:
        pass  # the client went away
    finally:
        output.cancel()
        intake.cancel()
        await asyncio.gather(output, intake, return_exceptions=True)


async def _send_output(socket: WebSocket, session: Session) -> None:
    while (piece := await session.read()) is not None:
        await socket.send(_message(*piece))
    await _tell(socket, status_of(await session.ended))


async def _receive(socket: WebSocket, inlet: Input) -> None:
    """Until the client closes."""
    try:
        while (message := await socket.receive()) is not None:
            data = message.encode() if isinstance(message, str) else message
            if not data:
                continue  # a keep-alive
            channel, payload = data[0], data[1:]
            if channel == _STDIN:
                await inlet.write(payload)
            elif channel == _RESIZE:
                _resize(inlet, payload)
            elif channel == _CLOSE and payload[:1] == bytes((_STDIN,)):
                inlet.close_stdin()
    except errors.ConnectionFailed:
        pass


class _Size(msgspec.Struct):
    width: int = msgspec.field(name="Width", default=0)
    height: int = msgspec.field(name="Height", default=0)


def _resize(inlet: Input, payload: bytes) -> None:
    try:
        size = msgspec.json.decode(payload, type=_Size)
    except msgspec.DecodeError:
        return
    if 0 < size.width < 65536 and 0 < size.height < 65536:
        inlet.resize(size.width, size.height)


def status_of(ending: Ending) -> dict[str, Any]:
    """The Status that tells a client how its command ended."""
    if ending.code == 0:
        return _SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": "command terminated with non-zero exit code: "
        f"command terminated with exit code {ending.code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(ending.code)}]},
    }


def _failed(message: str) -> dict[str, Any]:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: error executing command in container: {message}",
        "reason": "InternalError",
        "code": 500,
    }


def _message(stream: str, data: bytes) -> bytes:
    return bytes((_STDERR if stream == STDERR else _STDOUT,)) + data


async def _tell(socket: WebSocket, status: dict[str, Any]) -> None:
    await socket.send(bytes((_ERROR,)) + msgspec.json.encode(status))
