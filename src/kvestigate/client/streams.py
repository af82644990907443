"""Streams into a pod over WebSocket: exec, attach and port-forward.

Every message begins with a byte that names its channel. Exec and attach prefer
`v5.channel.k8s.io`, which alone can end stdin, and take v4 from older servers. Port-forward
uses v4 as well, which the API server passes on to the kubelet: one WebSocket carries one
connection. kubectl's own way, SPDY frames inside a WebSocket, would need SPDY.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from kvestigate import errors
from kvestigate.client.call import Call
from kvestigate.client.exchange import Exchange
from kvestigate.http.message import WebSocket

V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"

# Kubelets and proxies copy through buffers of this size; larger messages gain nothing.
_LONGEST_MESSAGE = 32 * 1024

# After the exit status only the close is missing, and some servers leave it out.
_GOODBYE_SECONDS = 5.0


class Channel(enum.IntEnum):
    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4
    CLOSE = 255


class Output(msgspec.Struct, frozen=True):
    channel: Channel
    """STDOUT or STDERR; with a terminal all is STDOUT."""
    data: bytes


class Completed(msgspec.Struct, frozen=True):
    """A process that has ended."""

    exit_code: int
    stdout: bytes
    stderr: bytes


S = TypeVar("S", bound="_Stream")


class _Stream:
    """A WebSocket opened on entering a block and closed on leaving it."""

    def __init__(self, exchange: Exchange, call: Call) -> None:
        self._exchange = exchange
        self._call = call
        self._socket: WebSocket

    async def __aenter__(self: S) -> S:
        self._socket = await self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._socket.close()

    async def _open(self) -> WebSocket:
        return await self._connect(V4)

    async def _connect(self, *subprotocols: str) -> WebSocket:
        return await self._exchange.transport.upgrade(
            self._call.request(), subprotocols, timeout=self._exchange.timeout
        )

    async def _send(self, channel: int, data: bytes) -> None:
        prefix = bytes((channel,))
        for start in range(0, max(len(data), 1), _LONGEST_MESSAGE):
            await self._socket.send(prefix + data[start : start + _LONGEST_MESSAGE])

    async def _receive(self) -> tuple[int, bytes] | None:
        while True:
            message = await self._socket.receive()
            if message is None:
                return None
            data = message.encode() if isinstance(message, str) else message
            if data:  # an empty message is a keep-alive
                return data[0], data[1:]


class Session(_Stream):
    """A process in a container: iterate over its output, then read `exit_code`."""

    exit_code: int | None = None
    """None until the server has told."""

    async def _open(self) -> WebSocket:
        try:
            return await self._connect(V5, V4)
        except errors.BadRequest:
            # A server that chokes on the unknown name instead of choosing the other one.
            return await self._connect(V4)

    @property
    def can_end_stdin(self) -> bool:
        return self._socket.subprotocol == V5

    async def write(self, data: bytes) -> None:
        if data:
            await self._send(Channel.STDIN, data)

    async def end_stdin(self) -> None:
        """Let the process read end-of-file."""
        if not self.can_end_stdin:
            raise errors.KvestigateError(
                f"the server's {V4} cannot end the standard input of a process",
                hint=f"servers since Kubernetes 1.30 speak {V5}, which can",
            )
        await self._send(Channel.CLOSE, bytes((Channel.STDIN,)))

    async def resize(self, width: int, height: int) -> None:
        """Tell the terminal its size in characters."""
        size = msgspec.json.encode({"Width": width, "Height": height})
        await self._send(Channel.RESIZE, size)

    async def __aiter__(self) -> AsyncIterator[Output]:
        status = b""
        while (received := await self._until_goodbye(ended=bool(status))) is not None:
            channel, data = received
            if channel == Channel.ERROR:
                status += data
            elif channel in (Channel.STDOUT, Channel.STDERR) and data:
                yield Output(Channel(channel), data)
        if not status:
            raise errors.ConnectionFailed(
                f"the connection ended before the process did: {self._call}"
            )
        self.exit_code = exit_code(status)

    async def communicate(self, input: bytes | None = None) -> Completed:
        """Send `input` and its end, gather all output, wait for the exit."""
        output = {Channel.STDOUT: bytearray(), Channel.STDERR: bytearray()}
        # Both at once: a process may write a lot before it has read everything.
        feeding = asyncio.ensure_future(self._feed(input))
        try:
            async for piece in self:
                output[piece.channel] += piece.data
        finally:
            feeding.cancel()  # whatever is left, the process did not want
            await asyncio.wait({feeding})
        if not feeding.cancelled():
            feeding.result()
        assert self.exit_code is not None
        return Completed(
            self.exit_code, bytes(output[Channel.STDOUT]), bytes(output[Channel.STDERR])
        )

    async def _feed(self, input: bytes | None) -> None:
        if input is None:
            return
        try:
            await self.write(input)
            await self.end_stdin()
        except errors.ConnectionFailed:
            pass  # the process has ended; the status tells how

    async def _until_goodbye(self, *, ended: bool) -> tuple[int, bytes] | None:
        if not ended:
            return await self._receive()
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS):
                return await self._receive()
        except (TimeoutError, errors.ConnectionFailed):
            return None


class PortStream(_Stream):
    """One connection to one port of a pod."""

    _DATA, _ERROR = 0, 1

    async def __aenter__(self) -> PortStream:
        await super().__aenter__()
        self._greetings = {self._DATA, self._ERROR}
        return self

    async def read(self) -> bytes:
        """The next bytes; empty at the end. `ConnectionFailed` when the pod refuses."""
        while (received := await self._receive()) is not None:
            channel, data = received
            if channel in self._greetings:
                self._greetings.discard(channel)  # each channel first repeats the port number
            elif channel == self._ERROR:
                raise errors.ConnectionFailed(data.decode("utf-8", "replace"))
            elif data:
                return data
        return b""

    async def write(self, data: bytes) -> None:
        if data:
            await self._send(self._DATA, data)

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        while data := await self.read():
            yield data


def exit_code(status: bytes) -> int:
    """What the error channel's Status says: an exit code, or the failure to run at all."""
    try:
        outcome: dict[str, Any] = msgspec.json.decode(status, type=dict)
    except msgspec.DecodeError:
        raise errors.InternalError(status.decode("utf-8", "replace")) from None
    if outcome.get("status") == "Success":
        return 0
    if outcome.get("reason") == "NonZeroExitCode":
        for cause in (outcome.get("details") or {}).get("causes") or ():
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
    raise errors.from_status(outcome, code=outcome.get("code") or 500)
