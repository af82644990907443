"""The load generator counts what a server answers; ratios are of ours to the others."""

from __future__ import annotations

import asyncio
import datetime
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.frame import BenchFailed
from bench.load import OBJECT, Job, Outcome
from bench.rates import Measured, RateResult, Target, compared, drive
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.message import Request, Response
from kvestigate.http.server import serve
from kvestigate.http.tls import server_context


class _Site:
    """Answers everything under /things and notes what was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.arrived = asyncio.Condition()

    async def handle(self, request: Request) -> Response:
        if request.query:
            return Response(200, [], self._event(int(request.query)), compress=False)
        async with self.arrived:
            self.asked.append(f"{request.method} {request.path} {request.body.decode()}")
            self.arrived.notify_all()
        if request.path.startswith("/stuck"):
            await asyncio.Event().wait()
        status = 200 if request.path.startswith("/things") else 404
        return Response(status, [], b"answer")

    async def _event(self, since: int) -> AsyncIterator[bytes]:
        """The next one, and the end: who wants more comes again."""
        async with self.arrived:
            while len(self.asked) <= since:
                await self.arrived.wait()
        yield b'{"resourceVersion":"%d"}\n' % (since + 1)


@pytest.fixture
async def site() -> _Site:
    return _Site()


@pytest.fixture
async def target(site: _Site, tmp_path: Path) -> AsyncIterator[Target]:
    now = datetime.datetime.now(datetime.UTC)
    authority = CertificateAuthority.create("authority", now=now)
    pair = authority.issue_server("bench", ["127.0.0.1"], now=now)
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.pair.certificate)
    tls = server_context(certificate=pair.certificate, key=pair.key)
    async with await serve(site.handle, tls=tls) as server:
        yield Target("site", server.address[1], ca, "token", (os.getpid(),))


def _job(target: Target, path: str, requests: int) -> Job:
    numbered = f"{path}/{OBJECT.decode()}"
    return Job(
        target.port,
        str(target.ca),
        target.token,
        "POST",
        numbered,
        "{}",
        connections=2,
        requests=requests,
    )


async def driven(target: Target, job: Job, *, patience: float = 40.0) -> Measured:
    """A generator that outlived its test would hold up all others: the loop waits for it."""
    return await asyncio.to_thread(drive, target, job, patience=patience)


async def test_every_request_is_asked_once(site: _Site, target: Target) -> None:
    job = replace(_job(target, "/things", 5), first=7)
    measured = await driven(target, job)
    assert measured.outcome.requests == 5
    assert sorted(site.asked) == [f"POST /things/{number:08} {{}}" for number in range(7, 12)]


async def test_objects_take_turns(site: _Site, target: Target) -> None:
    job = replace(_job(target, "/things", 4), objects=2)
    await driven(target, job)
    paths = sorted(asked.split()[1] for asked in site.asked)
    assert paths == ["/things/00000000"] * 2 + ["/things/00000001"] * 2


async def test_watchers_are_waited_for_and_go_on_when_they_are_cut_off(
    site: _Site, target: Target
) -> None:
    job = replace(_job(target, "/things", 3), watch="/things?", version="0", watchers=2)
    measured = await driven(target, job)
    assert measured.outcome.events == 2 * 3


async def test_a_refused_request_fails_the_bench(target: Target) -> None:
    with pytest.raises(BenchFailed, match="POST /nothing"):
        await driven(target, _job(target, "/nothing", 1))


async def test_a_request_that_is_never_answered_fails_the_bench(target: Target) -> None:
    with pytest.raises(BenchFailed, match="site: "):
        await driven(target, _job(target, "/stuck", 1), patience=0.5)


def test_ratios_are_of_turns_in_the_same_round() -> None:
    def turns(*rates: float) -> list[Measured]:
        return [Measured(Outcome(int(rate), 1.0, 1.0, 2.0, 0), 1.0) for rate in rates]

    ours, theirs = turns(100, 50, 200), turns(20, 10, 100)  # a slow round and a quick one
    rates = compared("GET", {"ours": ours, "theirs": theirs})
    assert [(rate.per_second, rate.ratio) for rate in rates] == [(100.0, 1.0), (20.0, 5.0)]
    result = RateResult("plane", "how", {"Python": "3"}, rates)
    assert [line.split()[3] for line in result.render().splitlines()[3:]] == ["1.0x", "5.0x"]
    rows = result.as_json()["rows"]
    assert isinstance(rows, list)
    assert [row["ratio"] for row in rows] == [1.0, 5.0]


def test_what_is_counted_may_be_more_than_the_requests() -> None:
    (rate,) = compared("watch", {"ours": [Measured(Outcome(10, 2.0, 1.0, 2.0, 0), 0.5)]}, 100)
    assert (rate.per_second, rate.cpu_us, rate.ratio) == (500.0, 500.0, 1.0)
