"""A process in a task, handed on to a WebSocket of the launcher's server."""

from __future__ import annotations

import asyncio

import msgspec
from fastapi import WebSocket, WebSocketDisconnect

from kvestigate import errors
from kvestigate.client.streams import Channel, Session

PROTOCOL = "v5.channel.k8s.io"
_LARGEST_SIZE = 10_000


async def bridge(websocket: WebSocket, session: Session) -> None:
    """Pass bytes both ways until the process ends or the user disconnects."""
    try:
        async with session:
            await websocket.accept(PROTOCOL)
            feeding = asyncio.ensure_future(_feed(websocket, session))
            try:
                async for piece in session:
                    await websocket.send_bytes(bytes((piece.channel,)) + piece.data)
            finally:
                feeding.cancel()
                await asyncio.wait({feeding})
            await _say(websocket, _ended(session.exit_code or 0))
            await websocket.close()
    except errors.KvestigateError as error:
        opened = websocket.client_state.name != "CONNECTING"
        if opened and isinstance(error, errors.ConnectionFailed):
            # Without a status nobody takes it for the end of the process.
            await websocket.close()
            return
        status = errors.to_status(errors.InternalError(error.message))
        if isinstance(error, errors.ApiError):
            status = errors.to_status(error)
        if not opened:
            await websocket.accept(PROTOCOL)
        await _say(websocket, status)
        await websocket.close()
    except WebSocketDisconnect:
        return


async def _feed(websocket: WebSocket, session: Session) -> None:
    try:
        while True:
            message = await websocket.receive_bytes()
            if not message:
                continue
            channel, data = message[0], message[1:]
            if channel == Channel.STDIN:
                await session.write(data)
            elif channel == Channel.RESIZE:
                await _resize(session, data)
            elif channel == Channel.CLOSE and session.can_end_stdin:
                await session.end_stdin()
    except (WebSocketDisconnect, errors.ConnectionFailed):
        await session.__aexit__(None, None, None)


class _Size(msgspec.Struct):
    Width: int = 0
    Height: int = 0


async def _resize(session: Session, data: bytes) -> None:
    try:
        size = msgspec.json.decode(data, type=_Size)
    except msgspec.DecodeError:
        return
    if 0 < size.Width < _LARGEST_SIZE and 0 < size.Height < _LARGEST_SIZE:
        await session.resize(size.Width, size.Height)


async def _say(websocket: WebSocket, status: dict[str, object]) -> None:
    await websocket.send_bytes(bytes((Channel.ERROR,)) + msgspec.json.encode(status))


def _ended(code: int) -> dict[str, object]:
    """How Kubernetes says that a process has ended."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    cause = {"reason": "ExitCode", "message": str(code)}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [cause]},
    }
