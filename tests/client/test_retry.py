from __future__ import annotations

import pytest

from kvestigate import errors
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.client.retry import retry_after
from kvestigate.http.message import Request, Response
from tests.client.scripted import (
    InstantClock,
    OpenTransport,
    Script,
    answer,
    forever,
    patient,
    pod,
    status,
)


@pytest.mark.parametrize(
    ("code", "header", "pause"),
    [
        (429, "3", 3.0),
        (503, "1", 1.0),
        (500, "0", 0.0),
        (429, "", None),
        (503, "Wed, 21 Oct 2026 07:28:00 GMT", None),
        (409, "1", None),
        (200, "1", None),
    ],
)
def test_only_refusals_that_name_a_pause_allow_a_repetition(
    code: int, header: str, pause: float | None
) -> None:
    assert retry_after(code, header) == pause


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("code", [429, 503])
async def test_every_method_is_repeated_when_the_server_names_a_pause(
    connected: OpenTransport, method: str, code: int
) -> None:
    refusal = answer({}, code, retry_after="7")
    server = Script(refusal, refusal, answer({"ok": 1}))
    clock = InstantClock()
    api = patient(await connected(server), clock)
    assert await api.request(method, "/x", body=b"{}") == b'{"ok": 1}'
    assert clock.pauses == [7.0, 7.0]


@pytest.mark.parametrize("code", [429, 500, 503, 504])
async def test_a_refusal_without_a_pause_is_final(connected: OpenTransport, code: int) -> None:
    server = Script(answer({}, code))
    api = patient(await connected(server))
    with pytest.raises(errors.ApiError):
        await api.request("GET", "/x")
    assert len(server.requests) == 1


async def test_the_server_is_not_asked_for_ever(connected: OpenTransport) -> None:
    refusal = status(429, "TooManyRequests", "busy")
    refusal.headers.append(("retry-after", "1"))
    server = Script(refusal)
    api = patient(await connected(server))
    with pytest.raises(errors.TooManyRequests, match="busy"):
        await api.request("GET", "/x")
    assert len(server.requests) == 11


class Breaking:
    """Breaks the first connections, then answers."""

    def __init__(self, breaks: int, cause: Exception | None = None) -> None:
        self.requests = 0
        self._breaks = breaks
        self._cause = cause

    async def __call__(self, request: Request) -> Response:
        self.requests += 1
        if self.requests <= self._breaks:
            raise errors.ConnectionFailed("the connection broke") from self._cause
        return answer(pod("web"))


@pytest.mark.parametrize(
    ("method", "breaks", "cause", "requests"),
    [
        ("GET", 2, None, 3),
        ("GET", 2, ConnectionResetError(), 3),
        ("GET", 9, None, 4),
        ("GET", 1, ConnectionRefusedError(), 1),
        ("POST", 1, None, 1),
        ("DELETE", 1, ConnectionResetError(), 1),
    ],
)
async def test_broken_connections_are_repeated_for_reads_only(
    method: str, breaks: int, cause: Exception | None, requests: int
) -> None:
    server = Breaking(breaks, cause)
    clock = InstantClock()
    # Only in process does the server's exception reach the client as it is.
    api = patient(InProcessTransport(server), clock)
    if requests > breaks:
        await api.request(method, "/x")
    else:
        with pytest.raises(errors.ConnectionFailed):
            await api.request(method, "/x")
    assert server.requests == requests
    assert clock.pauses == sorted(clock.pauses)
    assert len(clock.pauses) == requests - 1


async def test_all_attempts_share_one_deadline(connected: OpenTransport) -> None:
    async def silent(request: Request) -> Response:
        await forever()
        raise AssertionError

    api = patient(await connected(silent))
    with pytest.raises(errors.DeadlineExceeded, match="GET /slow"):
        await api.request("GET", "/slow", timeout=0.01)
