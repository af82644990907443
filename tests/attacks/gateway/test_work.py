"""One identity's work holds up no other: what is too much is refused before it is done."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import statistics
import tarfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from kvestigate.client.access import Access
from kvestigate.errors import InputError
from kvestigate.workspace.archives import Archive
from kvestigate.workspace.uploads import in_background
from tests.cybernet.conftest import TOKENS, Document, Front, changed, fronted

WORKSPACE = {"name": "agent-a", "node": "node-1", "storage": {"tmpfs_size": "1Gi"}}
CALLS = 100
SOON = 2.0
"""Seconds, on a machine that runs other tests: it was as long as the attack went on before."""


def archive_of(entries: int, name: str = "{}") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for number in range(entries):
            tar.addfile(tarfile.TarInfo(name.format(number)))
    return gzip.compress(file.getvalue(), 1)


LARGE = archive_of(50_000)


async def p99(front: Front) -> float:
    """Of another identity's calls, one after the other."""
    spent = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        answer = await front.call("report.list", token=TOKENS["bob"])
        spent.append(time.perf_counter() - begin)
        assert answer.status_code == 200
    return statistics.quantiles(spent, n=100)[-1]


@asynccontextmanager
async def under(attack: Callable[[], Awaitable[object]], at_once: int) -> AsyncIterator[None]:
    """While so many attackers do it again and again."""

    async def again() -> None:
        while True:
            await attack()

    tasks = [asyncio.ensure_future(again()) for _ in range(at_once)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            assert task.cancelled(), task.exception()


@pytest.fixture
async def syncing(document: Document, access: Access) -> AsyncIterator[Front]:
    document = changed("operations.allow", ["report.list", "workspace.sync"], document)
    async with fronted(document, access) as front:
        yield front


ATTACKS: dict[str, tuple[dict[str, Any], int]] = {
    "60,000 excludes": ({"excludes": ["*a*b*c*"] * 60_000}, 413),
    "19,000 excludes": ({"excludes": ["*a*b*c*"] * 19_000}, 413),
    "3,000 excludes": ({"excludes": ["*a*b*c*"] * 3_000}, 422),
    "a long exclude": ({"excludes": ["*" * 200_000]}, 422),
    "many values": ({"excludes": [[]] * 200_000}, 413),
    "many fields": ({str(number): 0 for number in range(50_000)}, 413),
}


@pytest.mark.parametrize("case", ATTACKS)
async def test_what_is_too_much_is_refused_at_once(syncing: Front, case: str) -> None:
    parameters, status = ATTACKS[case]
    archive = base64.b64encode(LARGE).decode()
    sent = {"workspace": WORKSPACE, "archive": archive, **parameters}
    answer = await syncing.call("workspace.sync", sent)
    assert answer.status_code == status, answer.text


LONG: dict[str, tuple[str, dict[str, Any]]] = {
    "argument": ("workspace.run", {"tag": "t", "command": ["a" * 200_000]}),
    "command": ("workspace.run", {"tag": "t", "command": ["a" * 300] * 1_000}),
    "control characters": ("workspace.run", {"tag": "t", "command": ["\x01" * 30_000]}),
    "variable": ("workspace.run", {"tag": "t", "command": ["a"], "env": {"A": "a" * 200_000}}),
    "variable's name": ("workspace.run", {"tag": "t", "command": ["a"], "env": {"A" * 99_999: ""}}),
    "variables": (
        "workspace.run",
        {"tag": "t", "command": ["a"], "env": {f"A{number}": "" for number in range(2_000)}},
    ),
    "tag": ("workspace.run", {"tag": "t" * 99_999, "command": ["a"]}),
    "path": ("workspace.fetch", {"path": "a/" * 50_000 + "a"}),
    "part of a path": ("workspace.fetch", {"path": "a" * 256}),
}


@pytest.mark.parametrize("case", LONG)
async def test_what_no_host_could_do_is_refused_and_no_failure(
    document: Document, access: Access, case: str
) -> None:
    operation, parameters = LONG[case]
    document = changed("operations.allow", [operation], document)
    async with fronted(document, access) as front:
        answer = await front.call(operation, {"workspace": WORKSPACE, **parameters})
    assert answer.status_code in (400, 422), answer.text[:300]


async def test_a_refusal_does_not_repeat_all_that_was_sent(syncing: Front) -> None:
    sent = {"workspace": WORKSPACE, "archive": "", "subdir": "a" * 900_000}
    answer = await syncing.call("workspace.sync", sent)
    assert answer.status_code == 422
    assert len(answer.content) < 5_000


@pytest.mark.workflow
@pytest.mark.parametrize("case", ["60,000 excludes", "19,000 excludes", "3,000 excludes"])
async def test_an_attack_by_excludes_holds_up_no_other_identity(syncing: Front, case: str) -> None:
    """From another process, as it would be: the attacker's own work is not the gateway's."""
    archive = base64.b64encode(LARGE).decode()
    body = {"workspace": WORKSPACE, "archive": archive, **ATTACKS[case][0]}
    content = httpx2.Request("POST", "http://x", json=body).read()
    headers = {"authorization": f"Bearer {TOKENS['ada']}"}

    async def attack() -> None:
        await syncing.http.post("/api/v1/op/workspace.sync", content=content, headers=headers)

    await p99(syncing)
    quiet = await p99(syncing)
    async with under(attack, 1):
        attacked = await p99(syncing)
    print(f"{case}: p99 {quiet * 1000:.1f} ms, under attack {attacked * 1000:.1f} ms")
    assert attacked < max(2 * quiet, SOON)


ADVERSARIAL = [f"*a{'?' * 13}{number}" for number in range(100)]


async def test_archives_being_checked_hold_up_no_other_identity(syncing: Front) -> None:
    async def attack() -> None:
        await in_background(Archive, io.BytesIO(LARGE), ADVERSARIAL)

    await p99(syncing)
    quiet = await p99(syncing)
    async with under(attack, 16):
        attacked = await p99(syncing)
    print(f"archives: p99 {quiet * 1000:.1f} ms, under attack {attacked * 1000:.1f} ms")
    assert attacked < max(2 * quiet, SOON)


def test_a_check_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvestigate.workspace.archives._LONGEST_CHECK", 0.0)
    with pytest.raises(InputError, match="seconds to read"):
        Archive(io.BytesIO(LARGE))
