from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

import pytest

from kvestigate import errors
from kvestigate.client.streams import V4, V5, Channel, Completed, exit_code
from kvestigate.http.message import Request, Response, Upgrade, WebSocket
from tests.client.scripted import OpenTransport, Script, failure, patient, status

SUCCESS = b'{"metadata":{},"status":"Success"}'


def exited(code: int) -> bytes:
    cause = {"reason": "ExitCode", "message": str(code)}
    return json.dumps(failure(500, "NonZeroExitCode", details={"causes": [cause]})).encode()


def process(run: Callable[[WebSocket], Awaitable[None]], subprotocol: str = V5) -> Script:
    return Script(Upgrade(run, subprotocol))


async def say(socket: WebSocket, channel: int, data: bytes) -> None:
    await socket.send(bytes((channel,)) + data)


async def test_output_comes_by_channel_and_then_the_exit_code(connected: OpenTransport) -> None:
    async def run(socket: WebSocket) -> None:
        for channel in (1, 2, 3, 1):  # the server greets on every channel with nothing
            await say(socket, channel, b"")
        await say(socket, 1, b"out")
        await say(socket, 2, b"err")
        await say(socket, 1, b"more")
        await say(socket, 3, exited(3))

    server = process(run)
    api = patient(await connected(server))
    async with api.exec("web", ["sh", "-c", "exit 3"], container="main") as session:
        output = [(piece.channel.name, piece.data) async for piece in session]
        assert session.exit_code == 3
    assert output == [("STDOUT", b"out"), ("STDERR", b"err"), ("STDOUT", b"more")]
    [request] = server.requests
    assert request.path == "/api/v1/namespaces/shop/pods/web/exec"
    assert parse_qs(request.query) == {
        "command": ["sh", "-c", "exit 3"],
        "container": ["main"],
        "stdout": ["true"],
        "stderr": ["true"],
    }


async def test_a_terminal_has_one_output_and_a_size(connected: OpenTransport) -> None:
    sizes: list[bytes | str | None] = []

    async def run(socket: WebSocket) -> None:
        sizes.append(await socket.receive())
        await say(socket, 3, SUCCESS)

    server = process(run)
    api = patient(await connected(server))
    async with api.attach("web", stdin=True, tty=True) as session:
        await session.resize(120, 40)
        assert await session.communicate() == Completed(0, b"", b"")
    assert sizes == [b'\x04{"Width":120,"Height":40}']
    assert server.requests[0].path.endswith("/attach")
    assert server.asked() == {"stdin": "true", "stdout": "true", "tty": "true"}


async def test_input_ends_and_the_process_sees_it(connected: OpenTransport) -> None:
    async def cat(socket: WebSocket) -> None:
        while (message := await socket.receive()) is not None:
            assert isinstance(message, bytes)
            if message == b"\xff\x00":
                await say(socket, 3, SUCCESS)
                return
            assert message[0] == Channel.STDIN
            await say(socket, 1, message[1:])

    api = patient(await connected(process(cat)))
    text = bytes(range(256)) * 1000
    async with api.exec("web", ["cat"], stdin=True) as session:
        assert await session.communicate(text) == Completed(0, text, b"")


async def test_an_older_server_chooses_v4_which_cannot_end_stdin(
    connected: OpenTransport,
) -> None:
    async def run(socket: WebSocket) -> None:
        await say(socket, 3, SUCCESS)

    api = patient(await connected(process(run, V4)))
    async with api.exec("web", ["cat"], stdin=True) as session:
        assert not session.can_end_stdin
        with pytest.raises(errors.KvestigateError, match="cannot end the standard input"):
            await session.end_stdin()
        assert (await session.communicate()).exit_code == 0


async def test_a_server_that_refuses_v5_is_asked_for_v4(connected: OpenTransport) -> None:
    async def run(socket: WebSocket) -> None:
        await say(socket, 3, SUCCESS)

    async def old(request: Request) -> Response | Upgrade:
        if V5 in request.headers.get("sec-websocket-protocol"):
            return status(400, "BadRequest", "unknown protocol")
        return Upgrade(run, V4)

    api = patient(await connected(old))
    async with api.exec("web", ["true"]) as session:
        assert (await session.communicate()).exit_code == 0


async def test_a_process_that_does_not_read_its_input_still_ends(
    connected: OpenTransport,
) -> None:
    async def run(socket: WebSocket) -> None:
        await say(socket, 3, exited(1))

    api = patient(await connected(process(run)))
    async with api.exec("web", ["false"], stdin=True) as session:
        assert (await session.communicate(b"x" * 5_000_000)).exit_code == 1


async def test_a_connection_that_ends_early_is_no_success(connected: OpenTransport) -> None:
    async def run(socket: WebSocket) -> None:
        await say(socket, 1, b"half")

    api = patient(await connected(process(run)))
    async with api.exec("web", ["true"]) as session:
        with pytest.raises(errors.ConnectionFailed, match="before the process did"):
            await session.communicate()
        assert session.exit_code is None


async def test_what_may_not_be_run_is_an_error(connected: OpenTransport) -> None:
    api = patient(await connected(Script(status(403, "Forbidden", "no exec for you"))))
    with pytest.raises(errors.Forbidden, match="no exec for you"):
        await api.exec("web", ["true"]).__aenter__()


async def test_leaving_the_block_ends_the_connection(connected: OpenTransport) -> None:
    ended = asyncio.Event()

    async def run(socket: WebSocket) -> None:
        while await socket.receive() is not None:
            pass
        ended.set()

    api = patient(await connected(process(run)))
    async with api.exec("web", ["sleep"]):
        pass
    async with asyncio.timeout(10):
        await ended.wait()


@pytest.mark.parametrize(("said", "code"), [(SUCCESS, 0), (exited(3), 3), (exited(137), 137)])
def test_the_exit_code_is_in_the_status(said: bytes, code: int) -> None:
    assert exit_code(said) == code


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        (
            json.dumps(failure(500, "InternalError", "no such file")).encode(),
            errors.InternalError,
            "no such file",
        ),
        (b"container not running", errors.InternalError, "container not running"),
        (json.dumps(failure(404, "NotFound", "gone")).encode(), errors.NotFound, "gone"),
    ],
)
def test_a_process_that_never_ran_has_no_exit_code(
    said: bytes, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        exit_code(said)


PORT = (8080).to_bytes(2, "little")


async def test_a_port_carries_bytes_both_ways(connected: OpenTransport) -> None:
    async def run(socket: WebSocket) -> None:
        await say(socket, 0, PORT)
        await say(socket, 1, PORT)
        while (message := await socket.receive()) is not None:
            assert isinstance(message, bytes)
            await say(socket, message[0], message[1:].upper())
            if message.endswith(b"bye"):
                return

    server = process(run, V4)
    api = patient(await connected(server))
    async with api.port_forward("web", 8080, namespace="other") as port:
        await port.write(b"hello")
        assert await port.read() == b"HELLO"
        await port.write(b"bye")
        assert [piece async for piece in port] == [b"BYE"]
        assert await port.read() == b""
    assert server.requests[0].path == "/api/v1/namespaces/other/pods/web/portforward"
    assert server.asked() == {"ports": "8080"}


async def test_a_port_nobody_listens_on_is_an_error(connected: OpenTransport) -> None:
    async def run(socket: WebSocket) -> None:
        await say(socket, 0, PORT)
        await say(socket, 1, PORT)
        await say(socket, 1, b"connection refused")

    api = patient(await connected(process(run, V4)))
    async with api.port_forward("web", 8080) as port:
        with pytest.raises(errors.ConnectionFailed, match="connection refused"):
            await port.read()
