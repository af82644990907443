"""What an agent did is in the audit log, whatever is done to the gateway meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kvestigate.client.access import Access
from kvestigate.cybernet.gateway import MOST_FAILURES, Caller
from kvestigate.cybernet.refusals import Unauthenticated
from tests.attacks.gateway.acting import TOKEN
from tests.cybernet.conftest import Document, Front, audited, changed, fronted, recorded

ROUNDS = 6
"""Of 200 in the benchmark."""


@contextmanager
def acting(audit: Path, acts: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    words = [sys.executable, "-m", "tests.attacks.gateway.acting", str(audit), str(acts)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def lines_of(audit: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in audit.read_text().splitlines()]


@pytest.mark.workflow
def test_a_gateway_that_is_killed_has_recorded_all_that_it_did(tmp_path: Path) -> None:
    """In a random moment, again and again; every line in the log stays whole."""
    audit, acts = tmp_path / "audit.jsonl", tmp_path / "acts"
    numbers = itertools.count()
    answered: list[str] = []
    one_more = threading.Semaphore(0)

    def call_until_it_is_gone(port: int) -> None:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
            while True:
                number = str(next(numbers))
                try:
                    answer = http.post(
                        "/api/v1/op/act",
                        json={"number": number},
                        headers={"authorization": f"Bearer {TOKEN}"},
                    )
                except httpx2.TransportError:
                    return
                assert answer.status_code == 200
                answered.append(number)
                one_more.release()

    chosen = random.Random(18)
    for _ in range(ROUNDS):
        with acting(audit, acts) as (process, port), ThreadPoolExecutor(8) as pool:
            clients = [pool.submit(call_until_it_is_gone, port) for _ in range(8)]
            for _ in range(chosen.randrange(1, 40)):
                assert one_more.acquire(timeout=30)
            process.kill()
            for client in clients:
                client.result()
    with acting(audit, acts):  # what a crash left at the end is put in order by the next line
        pass
    done = acts.read_text().split()
    intents = {it["parameters"]["number"]: it["id"] for it in lines_of(audit) if _is_intent(it)}
    outcomes = {it["parameters"]["number"] for it in lines_of(audit) if not _is_intent(it)}
    assert len(done) == len(set(done)) > ROUNDS
    assert set(done) <= intents.keys(), "done, and not recorded"
    assert set(answered) <= outcomes, "answered, and its outcome not recorded"
    assert len(set(intents.values())) == len(intents)


def written(document: Document) -> str:
    return Path(document["audit"]["path"]).read_text()


def _is_intent(line: dict[str, Any]) -> bool:
    return bool(line["stage"] == "intent")


async def test_an_intent_is_on_disk_before_the_act(front: Front, document: Document) -> None:
    await front.call("report.run", {"name": "nodes"})
    intent, outcome = audited(document)
    assert (intent["stage"], outcome["stage"]) == ("intent", "outcome")
    assert intent["id"] == outcome["id"]
    assert (intent["decision"], intent["outcome"]) == ("", "")
    assert intent["parameters"] == outcome["parameters"] == {"name": "nodes"}


async def test_threads_that_are_all_busy_hold_up_no_record(
    front: Front, document: Document
) -> None:
    """Uploads and name lookups share the loop's own threads; the log has one of its own."""
    loop = asyncio.get_running_loop()
    free = threading.Event()
    busy = [loop.run_in_executor(None, free.wait) for _ in range(64)]
    try:
        async with asyncio.timeout(20):
            answers = [await front.call("report.list") for _ in range(10)]
        assert {it.status_code for it in answers} == {200}
        assert len(recorded(document)) == 10
    finally:
        free.set()
        await asyncio.gather(*busy)


async def test_those_without_a_token_cannot_fill_the_disk(
    document: Document, access: Access
) -> None:
    async with fronted(document, access) as front:
        for _ in range(300):
            answer = await front.call("report.run", {"x": "y" * 1000}, token="wrong")
            assert answer.status_code in (401, 429)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) == 60
        assert answer.json()["error"]["code"] == "rate_limited"
        known = await front.call("report.list")
        assert known.status_code == 200, "those with a token are not held up by those without"
    strangers = [it for it in recorded(document) if not it["identity"]]
    assert [it["count"] for it in strangers] == [1, 299]
    assert strangers[1]["remote"] == "127.0.0.1"
    assert len(written(document)) < 4096


async def test_those_without_a_token_cannot_fill_the_disk_with_what_is_no_request(
    document: Document, access: Access
) -> None:
    """Other paths, other methods, and lengths that are no number count as any request."""
    async with fronted(document, access) as front:
        for number in range(40):
            answer = await front.http.get(f"/{number}" if number % 2 else "/api/v1/op/pods")
        assert answer.status_code == 429
        reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
        writer.write(b"POST /api/v1/op/pods HTTP/1.1\r\ncontent-length: x\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 10)).startswith(b"HTTP/1.1 429 ")
        writer.close()
    assert [it["count"] for it in recorded(document)] == [1, 40]


async def test_a_few_mistakes_are_told_as_such(document: Document, access: Access) -> None:
    async with fronted(document, access) as front:
        answers = [await front.call("pods", token="") for _ in range(MOST_FAILURES)]
    assert {it.status_code for it in answers} == {401}


async def test_many_addresses_make_no_more_lines_than_some(
    document: Document, access: Access
) -> None:
    async with fronted(document, access) as front:
        for number in range(3000):
            remote = f"[2001:db8::{number:x}]:443"
            await front.gateway.refuse(Caller("", remote), "x", Unauthenticated("no token"))
    lines = recorded(document)
    assert len(lines) < 70
    assert sum(it["count"] for it in lines) == 3000


async def test_a_large_request_makes_no_large_line(document: Document, access: Access) -> None:
    document = changed("operations.allow", ["workspace.status"], document)
    async with fronted(document, access) as front:
        nodes = ["n" * 40, "--token=c4n4ry", *["n" * 40] * 18_000]
        await front.call("workspace.status", {"nodes": nodes})
    assert len(written(document)) < 40_000
    assert "c4n4ry" not in written(document)


async def test_what_is_typed_by_mistake_is_masked_everywhere(
    document: Document, access: Access
) -> None:
    document = changed("operations.allow", ["report.run", "workspace.run"], document)
    async with fronted(document, access) as front:
        for operation, parameters in (
            ("report.run", {"name": "--token=c4n4ry"}),
            ("report.run", {"token=c4n4ry": "x"}),
            ("https://me:c4n4ry@host", {}),
            ("workspace.run", {"workspace": {"name": "API_KEY=c4n4ry"}, "tag": "token=c4n4ry"}),
        ):
            await front.call(operation.replace("/", "%2f"), parameters)
    assert len(audited(document)) == 8
    assert "c4n4ry" not in written(document)
